/** Zaps from switching on to switching off, against a real service that sends real requests. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { after, before, test } from 'node:test';
import { countAsked, undocumented } from './support/documented.js';
import { App, appTester } from './support/run.js';
import { startService, until } from './support/service.js';
import { startZapierSide } from './support/zapier-side.js';

/** @type {Awaited<ReturnType<typeof startService>>} */
let service;
/** @type {Awaited<ReturnType<typeof startZapierSide>>} */
let zapierSide;

before(async () => {
  zapierSide = await startZapierSide();
  service = await startService({
    'default/people.yaml': `name: People
source:
  type: command
  command: ["printf", "{\\"id\\": 1, \\"name\\": \\"Ada\\"}\\\\n{\\"id\\": 2, \\"name\\": \\"Grace\\"}\\\\n"]
`,
    'default/other.yaml':
      'name: Other\nsource: { type: command, command: ["printf", "{\\"id\\": 1}\\\\n"] }\n',
    'default/stock.yaml': 'source: { type: push }\n',
  });
});
after(async () => {
  await service?.stop();
  await zapierSide?.stop();
});

/**
 * A Zap: what Zapier stores about it between calls.
 *
 * @param {string} name of its hook
 * @param {string} type
 * @param {string} [workflowId]
 * @param {string} [filter]
 */
function zap(name, type, workflowId, filter) {
  const { operation } = App.triggers[type];
  const targetUrl = zapierSide.url(name);
  const base = () => ({
    authData: service.authData(),
    inputData: { ...(workflowId ? { workflowId } : {}), ...(filter ? { filter } : {}) },
    meta: {},
  });
  /** @type {any} */
  let subscribeData;
  return {
    targetUrl,
    subscribed: () => subscribeData,
    /** Resolves when no unfinished job is left. */
    async switchOn() {
      await until(
        'the jobs to end',
        () => service.call('GET', '/v1/jobs?state=queued,running,retrying'),
        (answer) => answer.body.jobs.length === 0,
      );
      subscribeData = await appTester(operation.performSubscribe, { ...base(), targetUrl });
    },
    /** @param {{ baseUrl: string, apiKey: string }} [authData] */
    switchOff: (authData = service.authData()) =>
      appTester(operation.performUnsubscribe, { ...base(), authData, targetUrl, subscribeData }),
    /** @param {{ rawRequest: object, cleanedRequest: object }} arrived */
    perform: (arrived) =>
      /** @type {Promise<any[]>} */ (
        appTester(operation.perform, {
          ...base(),
          subscribeData,
          rawRequest: arrived.rawRequest,
          cleanedRequest: arrived.cleanedRequest,
        })
      ),
    samples: () => /** @type {Promise<any[]>} */ (appTester(operation.performList, base())),
  };
}

/** @param {string} workflowId */
async function queue(workflowId) {
  await until(
    `room for a job of ${workflowId}`,
    () => service.call('POST', `/v1/workflows/${workflowId}/queue`),
    (answer) => answer.status === 200,
  );
}

const ownWebhooks = async (one) =>
  (await service.webhooks()).filter((webhook) => webhook.url === one.targetUrl);

test('there is a trigger for every event type, with its example as the sample', async () => {
  const { body } = await service.call('GET', '/v1/events/types');
  const hooks = Object.values(App.triggers).filter((trigger) => trigger.operation.type === 'hook');
  assert.deepEqual(
    Object.fromEntries(hooks.map(({ key, operation }) => [key, operation.sample])),
    Object.fromEntries(body.types.map(({ type, example }) => [type, example])),
  );
});

test('every trigger has a sample with an id before anything has happened', async () => {
  for (const { key, operation } of Object.values(App.triggers)) {
    if (operation.type !== 'hook') continue;
    const samples = await zap('samples', key).samples();
    assert.equal(samples.length, 1);
    assert.equal(samples[0].type, key);
    assert.match(samples[0].id, /^evt_/);
  }
});

test('a Zap that is switched on receives its event once, and leaves no webhook when it is switched off', async () => {
  const one = zap('finished', 'workflow_finished', 'people');
  await one.switchOn();
  const [webhook] = await ownWebhooks(one);
  assert.equal(webhook.id, one.subscribed().id);
  assert.deepEqual(webhook.events, ['workflow_finished']);

  await queue('people');
  const [arrived] = await zapierSide.until('finished', (all) => all.length > 0);
  assert.ok(arrived);
  const events = await one.perform(arrived);
  assert.equal(events.length, 1);
  assert.equal(events[0].type, 'workflow_finished');
  assert.equal(events[0].data.records.total, 2);
  assert.deepEqual(await one.perform(arrived), [], 'the same request again starts nothing');

  const [sample] = await one.samples();
  assert.equal(sample.data.version, 1, 'the sample is now the real one');

  await one.switchOff();
  assert.deepEqual(await ownWebhooks(one), []);
  await one.switchOff();
});

test('a Zap without a workflow receives events of every workflow', async () => {
  const one = zap('all', 'workflow_queued');
  await one.switchOn();
  assert.equal((await ownWebhooks(one)).length, 1);
  await queue('people');
  await queue('other');
  const seen = async () => (await Promise.all(zapierSide.at('all').map(one.perform))).flat();
  await zapierSide.until(
    'all',
    (all) => new Set(all.map((each) => each.cleanedRequest.workflowId)).size === 2,
  );
  assert.deepEqual(new Set((await seen()).map((event) => event.workflowId)), new Set(['people', 'other']));
  await one.switchOff();
  assert.deepEqual(await ownWebhooks(one), []);
});

test('a Zap with a filter starts only for what matches, and its mistakes stop it from being switched on', async () => {
  const one = zap('filtered', 'workflow_data_change', 'stock', 'previous.count > 0 && record.count == 0');
  await one.switchOn();
  for (const count of [5, 4, 0]) {
    const { status } = await service.call('POST', '/v1/workflows/stock/push', [
      { id: 'lamp', count },
      { id: 'rug', count: count + 1 },
    ]);
    assert.equal(status, 200);
  }
  const [arrived] = await zapierSide.until('filtered', (all) => all.length > 0);
  assert.ok(arrived);
  const [event] = await one.perform(arrived);
  assert.deepEqual([event.data.version, event.data.matched, event.data.differences[0].id], [3, 1, 'lamp']);
  await one.switchOff();
  assert.deepEqual(await ownWebhooks(one), []);
  const wrong = zap('wrong', 'workflow_data_change', 'stock', 'rekord.count == 0');
  await assert.rejects(wrong.switchOn(), /did you mean .+record/);
  assert.deepEqual(await ownWebhooks(wrong), []);
});

test('two Zaps receive the same event independently', async () => {
  const first = zap('first', 'workflow_finished', 'people');
  const second = zap('second', 'workflow_finished', 'people');
  await first.switchOn();
  await second.switchOn();
  await queue('people');
  const [toFirst] = await zapierSide.until('first', (all) => all.length > 0);
  const [toSecond] = await zapierSide.until('second', (all) => all.length > 0);
  assert.ok(toFirst && toSecond);
  const [[a], [b]] = [await first.perform(toFirst), await second.perform(toSecond)];
  assert.equal(a.id, b.id);
  await first.switchOff();
  assert.deepEqual(await ownWebhooks(first), []);
  assert.equal((await ownWebhooks(second)).length, 1);
  await second.switchOff();
});

test('switching on again after a lost response creates no second webhook', async () => {
  const one = zap('twice', 'workflow_failed', 'people');
  await one.switchOn();
  const { id } = one.subscribed();
  await one.switchOn();
  assert.equal(one.subscribed().id, id);
  assert.equal((await ownWebhooks(one)).length, 1);
  await one.switchOff();
});

test('a webhook can be unsubscribed by its URL alone', async () => {
  const one = zap('by-url', 'workflow_finished', 'people');
  await one.switchOn();
  await appTester(App.triggers.workflow_finished.operation.performUnsubscribe, {
    authData: service.authData(),
    targetUrl: one.targetUrl,
    subscribeData: undefined,
  });
  assert.deepEqual(await ownWebhooks(one), []);
});

test('a test of the webhook starts only the Zap for tests', async () => {
  const finished = zap('tried', 'workflow_finished', 'people');
  const tested = zap('tested', 'webhook_test', 'people');
  for (const [name, one] of Object.entries({ tried: finished, tested })) {
    await one.switchOn();
    await service.call('POST', `/v1/integrations/webhooks/${one.subscribed().id}/test`);
    const [arrived] = await zapierSide.until(name, (all) => all.length > 0);
    assert.ok(arrived);
    assert.equal(arrived.cleanedRequest.type, 'webhook_test');
    assert.equal((await one.perform(arrived)).length, name === 'tested' ? 1 : 0);
    await one.switchOff();
  }
});

test('a request that the team has not signed starts nothing, and its error says what to do', async () => {
  const one = zap('forged', 'workflow_queued', 'people');
  await one.switchOn();
  await queue('people');
  const [arrived] = await zapierSide.until('forged', (all) => all.length > 0);
  assert.ok(arrived);
  const { rawRequest, cleanedRequest } = arrived;
  const changed = rawRequest.content.replace('"people"', '"purple"');
  assert.notEqual(changed, rawRequest.content);
  const { privateKey } = generateKeyPairSync('ed25519');
  const { 'Http-Webhook-Id': id, 'Http-Webhook-Timestamp': timestamp, ...rest } = rawRequest.headers;
  const signature = sign(null, Buffer.from(`${id}.${timestamp}.${rawRequest.content}`), privateKey);
  const forgeries = {
    'a changed body': { ...rawRequest, content: changed },
    'no signature': { ...rawRequest, headers: { 'Content-Type': 'application/json' } },
    'another key': {
      ...rawRequest,
      headers: {
        ...rest,
        'Http-Webhook-Id': id,
        'Http-Webhook-Timestamp': timestamp,
        'Http-Webhook-Signature': `v1a,${signature.toString('base64')}`,
      },
    },
  };
  for (const [what, forged] of Object.entries(forgeries)) {
    await assert.rejects(
      one.perform({ rawRequest: forged, cleanedRequest }),
      /not signed by your Flowhook/,
      what,
    );
  }
  assert.equal((await one.perform(arrived)).length, 1, 'the real one still counts');
  await one.switchOff();
});

test('a restart during a delivery duplicates neither the event nor the webhook', async () => {
  const one = zap('killed', 'workflow_finished', 'people');
  await one.switchOn();
  zapierSide.fallSilent('killed');
  await queue('people');
  await zapierSide.until('killed', (all) => all.length >= 1);
  await service.kill();
  zapierSide.speak('killed');
  await service.restart();
  const arrived = await zapierSide.until('killed', (all) => all.length >= 2);
  assert.equal(new Set(arrived.map((each) => each.cleanedRequest.id)).size, 1);
  const started = [];
  for (const each of arrived) started.push(...(await one.perform(each)));
  assert.equal(started.length, 1);
  await one.switchOn();
  assert.equal((await ownWebhooks(one)).length, 1);
  await one.switchOff();
  assert.deepEqual(await ownWebhooks(one), []);
});

test('a webhook that could not be unsubscribed when its Zap was switched off is removed after the first 410', async () => {
  const one = zap('gone', 'workflow_queued', 'people');
  await one.switchOn();
  // Nothing listens there.
  const away = { ...service.authData(), baseUrl: 'http://127.0.0.1:1' };
  await assert.rejects(one.switchOff(away), /Flowhook cannot be reached at http:\/\/127\.0\.0\.1/);
  zapierSide.switchOff('gone');
  assert.equal((await ownWebhooks(one)).length, 1);
  await queue('people');
  await until(
    'the webhook to go',
    () => ownWebhooks(one),
    (left) => left.length === 0,
  );
});

test('no webhook is left', async () => {
  assert.deepEqual(await service.webhooks(), []);
});

test('openapi.json documents all requests of the app', () => {
  assert.ok(countAsked() > 5);
  assert.deepEqual(undocumented(), []);
});
