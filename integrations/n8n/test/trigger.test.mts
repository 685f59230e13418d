/** The trigger node against a real service: one webhook while it is active, none afterwards, each event once. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { createRequire } from 'node:module';
import { after, afterEach, before, test } from 'node:test';
import { startN8n } from './support/n8n.mts';
import { KEY, type Service, startService, until } from './support/service.mts';

const { isSigned } = createRequire(import.meta.url)('../dist/api/signature.js');

const PEOPLE = 'source: { type: command, command: ["sh", "-c", "echo \'{\\"id\\": 1}\'"] }\n';
const FINISHED = { events: ['workflow_finished'], workflowId: 'people' };

let service: Service;
let n8n: Awaited<ReturnType<typeof startN8n>>;
const opened: (typeof n8n)[] = [];
const another = async () => {
  const one = await startN8n(() => ({ baseUrl: `${service.url}/v1/`, apiKey: KEY }));
  opened.push(one);
  return one;
};

before(async () => {
  service = await startService({
    'default/people.yaml': `name: People\n${PEOPLE}`,
    'default/other.yaml': `name: other\n${PEOPLE}`,
    'default/stock.yaml': 'name: Stock\nsource: { type: push }\n',
  });
});
test.beforeEach(async () => {
  n8n = await another();
});
afterEach(async () => {
  await service.idle();
  for (const { id } of await service.webhooks()) {
    await service.call('DELETE', `/v1/integrations/webhooks/unsubscribe/${id}`);
  }
  for (const one of opened.splice(0)) await one.stop();
});
after(() => service?.stop());

const queue = async (workflowId: string) => {
  const { headers, status } = await service.call('POST', `/v1/workflows/${workflowId}/queue`);
  assert.equal(status, 200);
  return headers.get('x-job-id');
};

test('an active node has one webhook and receives the chosen events; a deactivated node has none', async () => {
  await n8n.activate(FINISHED);
  const [webhook, ...others] = await service.webhooks();
  assert.deepEqual([webhook?.url, webhook?.events, others], [n8n.webhookUrl, FINISHED.events, []]);
  const jobId = await queue('people');
  const [event] = await n8n.startedWith(1);
  assert.deepEqual([event?.type, event?.jobId], ['workflow_finished', jobId]);
  assert.equal(await n8n.deactivate(), true);
  assert.deepEqual(await service.webhooks(), []);
});

test('a node for all workflows receives the events of each workflow', async () => {
  await n8n.activate({ events: ['workflow_finished'], workflowId: '' });
  await queue('people');
  await queue('other');
  const started = await n8n.startedWith(2);
  assert.deepEqual(started.map((event) => event.workflowId).sort(), ['other', 'people']);
  await n8n.deactivate();
  assert.deepEqual(await service.webhooks(), []);
});

test('a node with a filter starts only for what matches, and another filter replaces its webhook', async () => {
  const changes = { events: ['workflow_data_change'], workflowId: 'stock' };
  await n8n.activate({ ...changes, filter: 'previous.count > 0 && record.count == 0' });
  const [webhook] = await service.webhooks();
  for (const count of [5, 4, 0]) {
    const records = [
      { id: 'lamp', count },
      { id: 'rug', count: count + 1 },
    ];
    assert.equal((await service.call('POST', '/v1/workflows/stock/push', records)).status, 200);
  }
  const [event] = await n8n.startedWith(1);
  const data = event?.data as { version: number; matched: number; differences: { id: string }[] };
  assert.deepEqual([data.version, data.matched, data.differences[0]?.id], [3, 1, 'lamp']);
  await n8n.restart();
  assert.deepEqual(await service.webhooks(), [webhook]);
  n8n.state.parameters = { ...changes, filter: 'change == "removed"' };
  await n8n.restart();
  const after = await service.webhooks();
  assert.deepEqual([after.length, after[0]?.id === webhook?.id], [1, false]);
  await n8n.deactivate();
  assert.deepEqual(await service.webhooks(), []);
});

test('restarts of n8n leave the webhook unchanged, even if nothing was saved', async () => {
  await n8n.activate(FINISHED);
  const before = await service.webhooks();
  await n8n.restart();
  assert.deepEqual(await service.webhooks(), before);
  n8n.state.staticData = '{}';
  await n8n.restart();
  assert.deepEqual(await service.webhooks(), before);
  await queue('people');
  await n8n.startedWith(1);
  await n8n.deactivate();
  assert.deepEqual(await service.webhooks(), []);
});

test('an event that is repeated after a crash of the service starts nothing', async () => {
  await n8n.activate(FINISHED);
  n8n.state.isSilent = true;
  await queue('people');
  await n8n.startedWith(1);
  await service.kill();
  n8n.state.isSilent = false;
  const before = n8n.state.answers.length;
  await service.restart();
  await until(
    'the event to come again',
    () => n8n.state.answers.length,
    (count) => count > before,
  );
  assert.equal(n8n.state.answers.at(-1), 200);
  assert.equal(n8n.state.started.length, 1);
  assert.equal((await service.webhooks()).length, 1);
});

test('an unsigned request gets 401 and starts nothing', async () => {
  await n8n.activate(FINISHED);
  const event = JSON.stringify({ id: 'evt_1', type: 'workflow_finished', workflowId: 'people' });
  const headers = { 'content-type': 'application/json' };
  const bare = await fetch(n8n.webhookUrl, { method: 'POST', headers, body: event });
  assert.equal(bare.status, 401);
  const signature = `v1a,${Buffer.alloc(64).toString('base64')}`;
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const forged = await fetch(n8n.webhookUrl, {
    method: 'POST',
    headers: {
      ...headers,
      'webhook-id': 'evt_1',
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
    },
    body: event,
  });
  assert.equal(forged.status, 401);
  assert.deepEqual(n8n.state.started, []);
});

test('a signature is valid for the exact bytes, and for five minutes', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const key = `whpk_${publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')}`;
  const body = Buffer.from('{"id":"evt_1"}');
  const atS = 1_800_000_000;
  const signature = sign(null, Buffer.from(`evt_1.${atS}.${body}`), privateKey).toString('base64');
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(atS),
    'webhook-signature': `v1,bm8= v1a,${signature}`,
  };
  const holds = (more: object, keys: string[], seconds: number) =>
    isSigned({ body, headers, ...more }, keys, (atS + seconds) * 1_000);
  assert.equal(holds({}, ['whpk_bm8=', key], 0), true);
  assert.equal(holds({}, [key], 300), true);
  assert.equal(holds({}, [key], 301), false);
  assert.equal(holds({}, [key], -301), false);
  assert.equal(holds({ body: Buffer.from('{"id":"evt_2"}') }, [key], 0), false);
  assert.equal(holds({ headers: { ...headers, 'webhook-id': 'evt_2' } }, [key], 0), false);
  assert.equal(holds({}, [], 0), false);
});

test('a test of the webhook succeeds, and starts the node only if that event was chosen', async () => {
  await n8n.activate(FINISHED);
  const [webhook] = await service.webhooks();
  const tested = () => service.call('POST', `/v1/integrations/webhooks/${webhook?.id}/test`);
  const first = n8n.state.answers.length;
  assert.ok((await tested()).status < 300);
  await until(
    'the test',
    () => n8n.state.answers.length,
    (count) => count > first,
  );
  assert.deepEqual([n8n.state.answers.at(-1), n8n.state.started], [200, []]);
  n8n.state.parameters = { events: ['webhook_test', 'workflow_finished'], workflowId: '' };
  await tested();
  assert.equal((await n8n.startedWith(1))[0]?.type, 'webhook_test');
});

test('other webhooks are kept: those of other URLs, and that of the workflow from which this one was copied', async () => {
  await service.call('POST', '/v1/integrations/webhooks/subscribe', {
    workflowId: 'people',
    webhookUrl: `${n8n.webhookUrl}/more`,
    events: FINISHED.events,
  });
  await n8n.activate(FINISHED);
  const copy = await another();
  copy.state.staticData = n8n.state.staticData;
  copy.state.workflowId = 'workflow-2';
  await copy.activate(FINISHED);
  assert.equal((await service.webhooks()).length, 3);
  await copy.deactivate();
  assert.equal((await service.webhooks()).length, 2);
  await n8n.deactivate();
  assert.deepEqual(
    (await service.webhooks()).map((webhook) => webhook.url),
    [`${n8n.webhookUrl}/more`],
  );
});

test('a node that was changed while the service was unavailable leaves no second webhook', async () => {
  await n8n.activate(FINISHED);
  await service.kill();
  assert.equal(await n8n.deactivate(), false);
  assert.equal(n8n.state.warnings.length, 1);
  await service.restart();
  await n8n.activate({ events: ['workflow_failed', 'workflow_finished'], workflowId: '' });
  const webhooks = await service.webhooks();
  assert.deepEqual(
    webhooks.map((webhook) => webhook.events),
    [['workflow_failed', 'workflow_finished']],
  );
  await n8n.deactivate();
  assert.deepEqual(await service.webhooks(), []);
});

test('the order of the events does not matter, and a paused webhook is resumed at the next start', async () => {
  await n8n.activate({ events: ['workflow_failed', 'workflow_finished'], workflowId: 'people' });
  const [webhook] = await service.webhooks();
  await service.call('POST', `/v1/integrations/webhooks/${webhook?.id}/pause`, {});
  n8n.state.parameters.events = ['workflow_finished', 'workflow_failed'];
  await n8n.restart();
  const { body } = await service.call('GET', `/v1/integrations/webhooks/${webhook?.id}`);
  assert.equal(body.state, 'active');
  assert.equal((await service.webhooks()).length, 1);
});

test('a webhook that is gone is created again at the next start, and a deactivation without it succeeds', async () => {
  await n8n.activate(FINISHED);
  const gone = async () => {
    const [webhook] = await service.webhooks();
    await service.call('DELETE', `/v1/integrations/webhooks/unsubscribe/${webhook?.id}`);
  };
  await gone();
  await n8n.restart();
  assert.equal((await service.webhooks()).length, 1);
  await gone();
  assert.equal(await n8n.deactivate(), true);
});

test('if a proxy drops the header with the id, the webhook is found in the list', async () => {
  n8n.state.dropped.push('x-webhook-id');
  await n8n.activate(FINISHED);
  const [webhook] = await service.webhooks();
  assert.match(n8n.state.staticData, new RegExp(String(webhook?.id)));
  await n8n.deactivate();
  assert.deepEqual(await service.webhooks(), []);
});

test('an unknown workflow causes an error with the message of the service, and leaves nothing behind', async () => {
  await assert.rejects(n8n.activate({ ...FINISHED, workflowId: 'nobody' }), /No workflow found/);
  assert.deepEqual(await service.webhooks(), []);
});

test('the events are those of the service, and the drop-down lists its workflows', async () => {
  const { body } = await service.call('GET', '/v1/events/types');
  const types = JSON.stringify(body).match(/"(?:type|name)":"(?:workflow|webhook)_\w+"/g) ?? [];
  const known = new Set(types.map((text) => text.split('"')[3]));
  const field = n8n.description.trigger.properties.find(({ name }) => name === 'events');
  const offered = (field?.options ?? []).map((option) => ('value' in option ? String(option.value) : ''));
  assert.deepEqual(offered.toSorted(), [...known].toSorted());
  const options = await n8n.options('trigger', 'getWorkflows');
  assert.deepEqual(options, [
    { name: 'All Workflows', value: '' },
    { name: 'other', value: 'other' },
    { name: 'People (people)', value: 'people' },
    { name: 'Stock (stock)', value: 'stock' },
  ]);
});
