/** Webhooks over HTTP beyond the contract: settings, secrets, tests, pauses, deliveries, replays, events. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { mintKey } from '../../src/teams/keys.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Answer, startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

type Json = Record<string, unknown>;

const WEBHOOKS = '/v1/integrations/webhooks';
const ONE_RECORD = `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`;

let service: TestService;
let receiver: Receiver;
let otherKey: string;
/** The status that the receiver returns. */
let status = 204;

before(async () => {
  service = await startService({
    workflows: { 'default/people.yaml': ONE_RECORD, 'other/private.yaml': ONE_RECORD },
  });
  receiver = await startReceiver({ status: () => status });
  const other = await service.store.teams.bySlug({ slug: 'other' });
  assert.ok(other);
  const scopes = ['read', 'queue', 'webhooks'] as const;
  otherKey = (await mintKey(service.store, { teamId: other.id, name: 'test', scopes, expiresAt: null })).key;
});
after(async () => {
  await service.stop();
  await receiver.stop();
});

const get = (path: string, headers = {}) => service.call('GET', path, undefined, headers);
const post = (path: string, body?: unknown, headers = {}) => service.call('POST', path, body, headers);
const patch = (path: string, body: unknown) => service.call('PATCH', path, body);

let urls = 0;
/** Subscribes a separate path of the receiver, to distinguish deliveries. */
async function subscribe(events: string[], workflowId = 'people', headers = {}): Promise<string> {
  urls += 1;
  const webhookUrl = `${receiver.url}/${urls}`;
  const answer = await post(`${WEBHOOKS}/subscribe`, { workflowId, webhookUrl, events }, headers);
  assert.equal(answer.status, 200);
  return answer.headers.get('x-webhook-id') ?? '';
}

/** Sends a test event and waits until its delivery is in this state, or has been attempted. */
async function testEvent(id: string): Promise<Json> {
  const made = (await post(`${WEBHOOKS}/${id}/test`)).body as Json;
  return bodyUntil(`/v1/deliveries/${made.deliveryId}`, 'an attempt', ({ attempt }) => attempt === 1);
}

function bodyUntil(path: string, what: string, holds: (body: Json) => boolean): Promise<Json> {
  return until(what, async () => {
    const body = (await get(path)).body as Json;
    return holds(body) && body;
  });
}

const refused = ({ status, body }: Answer, expected: number, sentence: RegExp) => {
  assert.match(String((body as Json).error), sentence);
  assert.equal(status, expected);
};

test('changes single settings, refuses invalid ones with a sentence, and hides header values', async () => {
  const path = `${WEBHOOKS}/${await subscribe(['workflow_finished'])}`;
  const { settings, ...webhook } = (await get(path)).body as Json;
  assert.deepEqual(settings, { ordered: false, ratePerSecond: null, timeoutMs: 15_000, headers: [] });
  assert.deepEqual(
    [webhook.state, webhook.pausedAt, webhook.pausedReason, webhook.failingSince, webhook.lastSuccessAt],
    ['active', null, null, null, null],
  );

  const changed = await patch(path, { ordered: true, ratePerSecond: 0.5, headers: { 'X-Token': 'hush' } });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  assert.doesNotMatch(JSON.stringify(changed.body), /hush/);
  await patch(path, { timeoutMs: 2_000 });
  const all = { ordered: true, ratePerSecond: 0.5, timeoutMs: 2_000, headers: ['X-Token'] };
  assert.deepEqual(((await get(path)).body as Json).settings, all);
  await patch(path, { ratePerSecond: null, headers: null });
  assert.deepEqual(((await get(path)).body as Json).settings, { ...all, ratePerSecond: null, headers: [] });

  for (const [body, sentence] of [
    [{}, /Set at least one of ordered, /],
    [{ orderd: true }, /no field "orderd"\. Did you mean `ordered`\?/],
    [{ ordered: 'yes' }, /`ordered` must be true or false/],
    [{ ratePerSecond: 0 }, /`ratePerSecond` must be a number from 0\.01 to 1000, or null/],
    [{ ratePerSecond: '5' }, /`ratePerSecond`/],
    [{ timeoutMs: 999 }, /`timeoutMs` must be a whole number of milliseconds from 1000 to 30000/],
    [{ timeoutMs: null }, /`timeoutMs`/],
    [{ headers: { host: 'x' } }, /host/],
    [{ headers: ['x'] }, /headers must be an object/],
    [[], /must be a JSON object/],
  ] as const) {
    refused(await patch(path, body), 400, sentence);
  }
});

test('a webhook that is held back shows why and until when, and so does a test event', async () => {
  const id = await subscribe(['workflow_failed']);
  const path = `${WEBHOOKS}/${id}`;
  const shown = async () => ((await get(path)).body as { breaker: Json }).breaker;
  const closed = { state: 'closed', since: null, nextAttemptAt: null, reason: null };
  assert.deepEqual(await shown(), closed);
  assert.equal(((await post(`${path}/test`)).body as Json).message, 'The test event is being sent');
  await bodyUntil(path, 'the first delivery', ({ lastSuccessAt }) => lastSuccessAt !== null);

  status = 500;
  try {
    for (let count = 0; count < 16; count += 1) await post(`${path}/test`);
    await bodyUntil(path, 'the breaker', ({ breaker }) => (breaker as Json).state === 'open');
  } finally {
    status = 204;
  }
  const { since, nextAttemptAt, reason } = await shown();
  assert.match(String(reason), /^The endpoint has failed \d+ times in a row$/);
  const restMs = Date.parse(String(nextAttemptAt)) - Date.parse(String(since));
  assert.ok(restMs >= 29_000, `held back for ${restMs} ms`);
  const { message } = (await post(`${path}/test`)).body as Json;
  assert.equal(message, `The test is waiting. ${reason}. Next attempt: ${nextAttemptAt}`);
  const listed = ((await get(WEBHOOKS)).body as { webhooks: Json[] }).webhooks.find((one) => one.id === id);
  assert.deepEqual(listed?.breaker, await shown());

  await post(`${path}/pause`);
  assert.equal((await shown()).nextAttemptAt, null, 'nothing is sent while it is paused');
  assert.deepEqual((await post(`${path}/resume`)).status, 200);
  await bodyUntil(path, 'a success', ({ breaker, failingSince }) => {
    return failingSince === null && (breaker as Json).reason === null;
  });
});

test('shows a webhook whose headers cannot be decrypted, and replaces them', async () => {
  const id = await subscribe(['workflow_finished']);
  const path = `${WEBHOOKS}/${id}`;
  const team = await service.store.teams.bySlug({ slug: 'default' });
  const sealed = `sealed1.${'0'.repeat(16)}.AAAA`;
  await service.store.webhooks.change({ teamId: team?.id ?? '', id, headers: sealed });
  const headersOf = ({ status, body }: Answer) => {
    const webhook = ((body as Json).webhook ?? body) as { settings: Json };
    return [status, webhook.settings.headers];
  };
  assert.deepEqual(headersOf(await get(path)), [200, null]);
  assert.deepEqual(headersOf(await patch(path, { ordered: true })), [200, null]);
  assert.deepEqual(headersOf(await patch(path, { headers: { 'x-token': 'hush' } })), [200, ['x-token']]);
});

test('a webhook without a workflow receives events of all workflows, and is listed like others', async () => {
  const webhookUrl = `${receiver.url}/wide`;
  const body = { webhookUrl, events: ['job.queued'], settings: { ordered: true, headers: { 'x-a': 'b' } } };
  const made = await post(WEBHOOKS, body);
  const { message, ...webhook } = made.body as Json;
  const id = String(webhook.id);
  assert.equal(made.status, 200, JSON.stringify(webhook));
  assert.equal(message, `Subscribed: webhook ${id}.`);
  assert.deepEqual([webhook.workflowId, webhook.url, webhook.events], [null, webhookUrl, ['job.queued']]);
  const settings = { ordered: true, ratePerSecond: null, timeoutMs: 15_000, headers: ['x-a'] };
  assert.deepEqual(webhook.settings, settings);
  assert.equal(made.headers.get('location'), `${WEBHOOKS}/${id}`);
  assert.deepEqual((await get(`${WEBHOOKS}/${id}`)).body, webhook);
  const again = (await post(WEBHOOKS, { webhookUrl, events: ['job.queued'], settings: { timeoutMs: 2_000 } }))
    .body as Json;
  assert.deepEqual([again.id, again.settings], [id, { ...settings, timeoutMs: 2_000 }]);

  const { webhooks } = (await get(`${WEBHOOKS}/list`)).body as { webhooks: Json[] };
  for (const listed of webhooks) assert.deepEqual(Object.keys(listed), ['id', 'createdAt', 'url', 'events']);
  assert.ok(webhooks.some((listed) => listed.id === id));
  const ofOne = (await get(`${WEBHOOKS}/list?workflowId=people`)).body as { webhooks: Json[] };
  assert.ok(!ofOne.webhooks.some((listed) => listed.id === id));

  assert.equal((await post('/v1/workflows/people/queue')).status, 200);
  await bodyUntil(`${WEBHOOKS}/${id}/deliveries`, 'the delivery', ({ deliveries }) =>
    (deliveries as Json[]).some(({ state }) => state === 'delivered'),
  );
  const received = receiver.received.find(({ headers }) => headers['x-a'] === 'b');
  assert.deepEqual([received?.event.type, received?.event.workflowId], ['workflow_queued', 'people']);

  for (const [wrong, sentence] of [
    [{ events: ['*'] }, /`webhookUrl` must be a string/],
    [{ webhookUrl, events: [] }, /`events` must contain/],
    [
      { webhookUrl, events: ['job.failed', 'job.finishd'] },
      /"job.finishd" never fires here; did you mean "job.finished"\?/,
    ],
    [{ webhookUrl, events: ['*'], workflowId: '' }, /`workflowId` must be the id of a workflow, or null/],
    [{ webhookUrl, events: ['*'], ordered: true }, /no field "ordered"/],
    [{ webhookUrl, events: ['*'], settings: [] }, /`settings` must be an object/],
    [{ webhookUrl, events: ['*'], settings: { orderd: true } }, /Did you mean `settings.ordered`\?/],
  ] as const) {
    refused(await post(WEBHOOKS, wrong), 400, sentence);
  }
  const ended = await service.call('DELETE', `${WEBHOOKS}/unsubscribe/${id}`);
  assert.deepEqual([ended.status, Object.keys(ended.body as Json)], [200, ['message']]);
});

test('a webhook for one workflow is created with its settings, and found again by the same call', async () => {
  const webhookUrl = `${receiver.url}/one`;
  const body = { webhookUrl, events: ['job.queued'], workflowId: 'people' };
  const made = (await post(WEBHOOKS, { ...body, settings: { ordered: true } })).body as Json;
  assert.deepEqual([made.workflowId, (made.settings as Json).ordered], ['people', true]);
  const again = (await post(WEBHOOKS, body)).body as Json;
  const same = 'has the same workflow, URL and events, and is active.';
  assert.deepEqual(again, { ...made, message: `Already subscribed: webhook ${made.id} ${same}` });
  const { headers } = await post(`${WEBHOOKS}/subscribe`, body);
  assert.equal(headers.get('x-webhook-id'), made.id, 'the frozen call finds it as well');
  const wide = (await post(WEBHOOKS, { ...body, workflowId: null })).body as Json;
  assert.notEqual(wide.id, made.id);
  assert.equal((await post(WEBHOOKS, { ...body, workflowId: 'nobody' })).status, 404);
});

test('405 lists exactly the allowed methods', async () => {
  const path = `${WEBHOOKS}/${await subscribe(['workflow_finished'])}`;
  const wrong = await service.call('PUT', path);
  assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'GET, HEAD, PATCH, OPTIONS']);
  for (const [action, allow] of [
    ['test', 'POST, OPTIONS'],
    ['deliveries', 'GET, HEAD, OPTIONS'],
    ['replay', 'POST, OPTIONS'],
    ['rotate', 'POST, OPTIONS'],
  ]) {
    const answer = await service.call('DELETE', `${path}/${action}`);
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, allow]);
  }
  for (const known of ['list', 'subscribe', 'unsubscribe']) {
    assert.equal((await patch(`${WEBHOOKS}/${known}`, {})).status, 405);
  }
  assert.equal((await patch(`${WEBHOOKS}/else`, {})).status, 404);
});

test('delivers a test event with the custom headers, and shows the attempt in detail', async () => {
  const id = await subscribe(['workflow_failed']);
  await patch(`${WEBHOOKS}/${id}`, { headers: { 'x-token': 'hush' } });
  const delivery = await testEvent(id);
  const { attempts, event, lastAttempt, ...rest } = delivery as Json & { attempts: Json[]; event: Json };
  assert.deepEqual(
    [rest.webhookId, rest.eventType, rest.origin, rest.state, rest.nextAttemptAt],
    [id, 'webhook_test', 'test', 'delivered', null],
  );
  assert.equal((lastAttempt as Json).message, 'Delivered: the receiver returned 204');
  const [attempt] = attempts;
  assert.deepEqual([attempts.length, attempt?.number, attempt?.status], [1, 1, 204]);
  const { request, timing, remoteAddress } = attempt as {
    request: Json;
    timing: Json;
    remoteAddress: string;
  };
  assert.equal(typeof timing.queuedMs, 'number');
  assert.equal(typeof timing.firstByteMs, 'number');
  assert.equal(remoteAddress, '127.0.0.1');
  assert.match(JSON.stringify(request.headers), /webhook-signature/);
  assert.doesNotMatch(JSON.stringify(delivery), /hush/);

  const received = receiver.received.find((one) => one.event.id === event.id);
  assert.equal(received?.headers['x-token'], 'hush');
  assert.deepEqual(event, received?.event);
  const read = await get(`/v1/events/${event.id}`);
  assert.deepEqual([read.status, read.body], [200, received?.event]);
});

test('a rotated secret is returned uncached, and the old secret also signs during the overlap', async () => {
  const id = await subscribe(['workflow_failed']);
  const before = ((await get(`${WEBHOOKS}/${id}/secret`)).body as { secret: string }).secret;
  const rotated = await post(`${WEBHOOKS}/${id}/rotate`, { overlapHours: 1 });
  const { secret, overlapUntil } = rotated.body as { secret: string; overlapUntil: string };
  assert.equal(rotated.headers.get('cache-control'), 'private, no-store');
  assert.notEqual(secret, before);
  assert.ok(Date.parse(overlapUntil) > Date.now() + 3_500_000);
  assert.equal(((await get(`${WEBHOOKS}/${id}/secret`)).body as { secret: string }).secret, secret);
  const verified = async (secrets: string[]) => {
    const { event } = (await testEvent(id)) as { event: Json };
    const received = receiver.received.find((one) => one.event.id === event.id);
    assert.ok(received);
    const headers = received.headers as Record<string, string>;
    return secrets.filter((one) => {
      try {
        return new Webhook(one).verify(received.text, headers) !== undefined;
      } catch {
        return false;
      }
    });
  };
  assert.deepEqual(await verified([before, secret]), [before, secret]);

  const { secret: third } = (await post(`${WEBHOOKS}/${id}/rotate`, { overlapHours: 0 })).body as {
    secret: string;
  };
  assert.deepEqual(await verified([before, secret, third]), [third]);
  for (const overlapHours of [-1, 169, '1', null]) {
    refused(await post(`${WEBHOOKS}/${id}/rotate`, { overlapHours }), 400, /from 0 to 168/);
  }
});

test('a paused webhook shows since when and why, and sends waiting deliveries when it is resumed', async () => {
  const id = await subscribe(['workflow_failed']);
  refused(await post(`${WEBHOOKS}/${id}/pause`, { reason: '' }), 400, /`reason` must be a string/);
  const paused = (await post(`${WEBHOOKS}/${id}/pause`, { reason: 'Moving house' })).body as {
    webhook: Json;
  };
  assert.deepEqual([paused.webhook.state, paused.webhook.pausedReason], ['paused', 'Moving house']);
  assert.equal(typeof paused.webhook.pausedAt, 'string');
  const again = (await post(`${WEBHOOKS}/${id}/pause`)).body as { webhook: Json };
  assert.equal(again.webhook.pausedReason, 'Moving house');

  const made = (await post(`${WEBHOOKS}/${id}/test`)).body as Json;
  assert.match(String(made.message), /paused.*when it is resumed/);
  const waiting = (await get(`/v1/deliveries/${made.deliveryId}`)).body as Json;
  assert.deepEqual([waiting.state, waiting.attempt], ['waiting', 0]);
  const resumed = (await post(`${WEBHOOKS}/${id}/resume`)).body as { webhook: Json };
  assert.deepEqual([resumed.webhook.state, resumed.webhook.pausedReason], ['active', null]);
  await bodyUntil(`/v1/deliveries/${made.deliveryId}`, 'delivery', ({ state }) => state === 'delivered');
});

test('lists deliveries newest first, by state and time, page by page', async () => {
  const id = await subscribe(['workflow_failed']);
  const path = `${WEBHOOKS}/${id}/deliveries`;
  const ids: unknown[] = [];
  for (let round = 0; round < 2; round += 1) ids.unshift((await testEvent(id)).id);
  status = 500;
  const failed = await testEvent(id);
  status = 204;
  ids.unshift(failed.id);
  assert.equal(failed.state, 'waiting');
  assert.ok(Date.parse(String(failed.nextAttemptAt)) > Date.now());
  assert.match(String((failed.lastAttempt as Json).message), /500/);

  const listed = async (query: string) =>
    ((await get(path + query)).body as { deliveries: Json[] }).deliveries.map((one) => one.id);
  assert.deepEqual(await listed(''), ids);
  assert.deepEqual(await listed('?state=waiting,dead'), [failed.id]);
  const since = encodeURIComponent(String(failed.createdAt));
  assert.deepEqual(await listed(`?since=${since}`), [failed.id]);
  assert.deepEqual(await listed(`?until=${since}`), ids);
  const page = await get(`${path}?limit=2`);
  const next = /^<(.*)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  assert.deepEqual(
    ((await get(next)).body as { deliveries: Json[] }).deliveries.map((one) => one.id),
    ids.slice(2),
  );
  refused(
    await get(`${path}?state=waitin`),
    400,
    /`state` must be one of waiting, .*Did you mean `waiting`\?/,
  );
  refused(await get(`${path}?since=yesterday`), 400, /`since` must be an ISO 8601 time/);
  refused(await get(`${path}?since=2026-01-02&until=2026-01-01`), 400, /`since` must not be after `until`/);
  refused(await get(`${path}?cursor=x`), 400, /`cursor`/);
});

const isDelivered = ({ state }: Json) => state === 'delivered';

test('replaying a waiting delivery sends it now, and a replay shows its results', async (t) => {
  t.after(() => {
    status = 204;
  });
  const id = await subscribe(['workflow_failed']);
  status = 401;
  const first = (await testEvent(id)) as Json & { event: Json };
  assert.equal(first.state, 'waiting');
  status = 204;
  const { body, headers } = await post(`/v1/deliveries/${first.id}/replay`);
  assert.deepEqual(body, {
    message: 'The delivery was still waiting, and is due now',
    deliveryId: first.id,
    retried: true,
    attempt: 1,
  });
  assert.equal(headers.get('location'), `/v1/deliveries/${first.id}`);
  const sent = await bodyUntil(`/v1/deliveries/${first.id}`, 'delivery', isDelivered);
  assert.equal(sent.attempt, 2);
  assert.equal(receiver.received.filter(({ event }) => event.id === first.event.id).length, 2);
  const { deliveries } = (await get(`${WEBHOOKS}/${id}/deliveries`)).body as { deliveries: Json[] };
  assert.equal(deliveries.length, 1, 'no other delivery was created');

  const copy = (await post(`/v1/deliveries/${first.id}/replay`)).body as Json;
  assert.deepEqual([copy.retried, copy.attempt], [false, 0]);
  await bodyUntil(`/v1/deliveries/${copy.deliveryId}`, 'its copy', isDelivered);
  status = 401;
  const failing = (await post(`/v1/deliveries/${first.id}/replay`)).body as Json;
  await bodyUntil(
    `/v1/deliveries/${failing.deliveryId}`,
    'a copy that fails',
    ({ attempt }) => attempt === 1,
  );
  const same = { deliveryId: failing.deliveryId, retried: true, attempt: 1 };
  await post(`${WEBHOOKS}/${id}/pause`);
  const { message, ...made } = (await post(`/v1/deliveries/${first.id}/replay`)).body as Json;
  assert.deepEqual(made, same, 'its copy waits');
  assert.match(String(message), /^The delivery was still waiting/);
  const listed = (await post(`${WEBHOOKS}/${id}/replay`, { deliveryIds: [first.id] })).body as Json;
  assert.match(String(listed.message), /^The delivery was still waiting/);
  status = 204;
  await post(`${WEBHOOKS}/${id}/resume`);
  await bodyUntil(`/v1/deliveries/${failing.deliveryId}`, 'that copy', isDelivered);

  status = 401;
  const since = new Date(0).toISOString();
  const failed = [await testEvent(id), await testEvent(id)];
  const trial = (await post(`${WEBHOOKS}/${id}/replay`, { since, dryRun: true })).body as Json;
  assert.match(String(trial.message), /^The replay would send 2 events: 2 waiting/);
  const begun = await post(`${WEBHOOKS}/${id}/replay`, { since });
  const where = begun.headers.get('location') ?? '';
  const done = await bodyUntil(where, 'the attempts', ({ state, made, outcome }) => {
    return state === 'done' && made === 2 && (outcome as Json).failed === 2;
  });
  assert.deepEqual(done.states, ['waiting', 'dead']);
  assert.deepEqual(done.outcome, {
    arrived: 0,
    underWay: 0,
    failed: 2,
    canceled: 0,
    superseded: 0,
    failures: [{ status: 401, message: 'HTTP 401: only 2xx counts as delivered', count: 2, retried: 2 }],
    isComplete: true,
  });
  await post(`${WEBHOOKS}/${id}/pause`);
  const held = (await post(`${WEBHOOKS}/${id}/replay`, { deliveryIds: failed.map((one) => one.id) }))
    .body as Json;
  assert.deepEqual(
    held.deliveryIds,
    failed.map((one) => one.id),
  );
  assert.match(
    String(held.message),
    /2 deliveries were still waiting.* The webhook is paused: nothing is sent until/,
  );
});

test('replays one delivery, several, or all of a period, with the same event IDs', async () => {
  const id = await subscribe(['workflow_failed']);
  const first = (await testEvent(id)) as Json & { event: Json };
  const second = (await testEvent(id)) as Json & { event: Json };
  const arrived = (event: Json) => receiver.received.filter((one) => one.event.id === event.id).length;

  const one = await post(`/v1/deliveries/${first.id}/replay`);
  const { deliveryId } = one.body as Json;
  assert.equal(one.headers.get('location'), `/v1/deliveries/${deliveryId}`);
  const again = await bodyUntil(`/v1/deliveries/${deliveryId}`, 'delivery', isDelivered);
  assert.deepEqual([again.origin, again.eventId, arrived(first.event)], ['replay', first.eventId, 2]);

  const some = await post(`${WEBHOOKS}/${id}/replay`, { deliveryIds: [first.id, second.id] });
  const { deliveryIds } = some.body as { deliveryIds: string[] };
  assert.equal(deliveryIds.length, 2);
  for (const sent of deliveryIds) await bodyUntil(`/v1/deliveries/${sent}`, 'it', isDelivered);
  assert.deepEqual([arrived(first.event), arrived(second.event)], [3, 2]);

  const since = String(first.createdAt);
  const trial = await post(`${WEBHOOKS}/${id}/replay`, { since, states: ['delivered'], dryRun: true });
  const { plan, message } = trial.body as { plan: Json; message: string };
  assert.equal(message, 'The replay would send 2 events: 2 delivered');
  assert.deepEqual(plan.byState, { waiting: 0, delivered: 2, dead: 0, canceled: 0 });
  const none = await post(`${WEBHOOKS}/${id}/replay`, { since, dryRun: true });
  assert.equal(
    (none.body as Json).message,
    'There is nothing to send: no delivery of this period is waiting or dead. Other deliveries: 2 delivered',
  );
  assert.deepEqual((none.body as { plan: Json }).plan.states, ['waiting', 'dead']);

  const all = await post(`${WEBHOOKS}/${id}/replay`, { since, states: ['delivered'] });
  const { replay } = all.body as { replay: Json };
  const where = all.headers.get('location') ?? '';
  assert.equal(where, `${WEBHOOKS}/${id}/replays/${replay.id}`);
  const done = await bodyUntil(
    where,
    'its end',
    ({ state, outcome }) => state === 'done' && (outcome as Json).underWay === 0,
  );
  assert.equal(done.made, 2);
  assert.equal((done.outcome as Json).arrived, 2);
  assert.deepEqual([arrived(first.event), arrived(second.event)], [4, 3], 'each event once');

  for (const [body, sentence] of [
    [{}, /Send either `deliveryIds`, or `since`/],
    [{ deliveryIds: [first.id], since }, /Send either/],
    [{ deliveryIds: [] }, /1 to 100 IDs/],
    [{ deliveryIds: [1] }, /`deliveryIds\[0\]`/],
    [{ states: ['dead'] }, /Send either/],
    [{ since: 5 }, /`since` must be an ISO 8601 time/],
    [{ since, until: '2020-01-01' }, /must not be after `until`/],
    [{ since, dryRun: 'yes' }, /`dryRun` must be true or false/],
    [{ since, dryrun: true }, /"dryrun".*Did you mean `dryRun`\?/],
    [{ since, states: ['ded'] }, /`states\[0\]` must be one of .*Did you mean `dead`\?/],
  ] as const) {
    refused(await post(`${WEBHOOKS}/${id}/replay`, body), 400, sentence);
  }
  const otherWebhook = await subscribe(['workflow_failed']);
  const elsewhere = await post(`${WEBHOOKS}/${otherWebhook}/replay`, { deliveryIds: [first.id] });
  refused(elsewhere, 404, /^No delivery found$/);
});

test('a receiver reads the events after the last one it knows, and can wait for the next', async () => {
  const id = await subscribe(['workflow_failed']);
  const { next } = (await get('/v1/events?after=now')).body as { next: number };
  const waiting = get(`/v1/events?after=${next}&wait=25`);
  const made = (await post(`${WEBHOOKS}/${id}/test`)).body as Json;
  const { events, next: after } = (await waiting).body as { events: Json[]; next: number };
  assert.deepEqual([events.map((event) => event.id), after], [[made.eventId], next + 1]);
  const rest = (await get(`/v1/events?after=${after}`)).body as { events: Json[]; next: number };
  assert.deepEqual(rest, { events: [], next: after });
  const { events: all } = (await get('/v1/events?limit=250')).body as { events: Json[] };
  assert.deepEqual(
    all.map((event) => event.sequence),
    all.map((_, at) => at + 1),
  );
  assert.equal(((await get('/v1/events?limit=1')).body as { next: number }).next, 1);
  refused(await get('/v1/events?after=x'), 400, /`after` must be the `sequence` of an event, or `now`/);
  refused(await get('/v1/events?wait=26'), 400, /`wait`.*from 0 to 25/);
  refused(await get('/v1/events?limit=0'), 400, /`limit`/);
});

test('limits the waiting calls of a team, and ends them when the service stops', async () => {
  const own = await startService();
  try {
    const calls = Array.from({ length: 21 }, () => own.call('GET', '/v1/events?wait=25'));
    const refusal = await Promise.race(calls);
    refused(refusal, 503, /Too many calls are waiting for events/);
    assert.equal(refusal.headers.get('retry-after'), '5');
    await own.stop();
    const answers = await Promise.all(calls);
    assert.deepEqual(answers.map((answer) => answer.status).sort(), [...Array(20).fill(200), 503]);
  } finally {
    await own.stop();
  }
});

test('resources of another team are handled like unknown ones', async () => {
  const headers = { 'x-api-key': otherKey };
  const webhook = await subscribe(['workflow_failed'], 'private', headers);
  const made = (await post(`${WEBHOOKS}/${webhook}/test`, undefined, headers)).body as Json;
  const selection = { since: '2020-01-01' };
  const { replay } = (await post(`${WEBHOOKS}/${webhook}/replay`, selection, headers)).body as {
    replay: Json;
  };
  const unknown = '01kadz8v3s7v0s8e1c3q5m2n4p';
  for (const [error, ids, calls] of [
    [
      'No webhook found',
      [webhook, `wh_${unknown}`, 'wh_%ZZ0'],
      [
        ['GET', (id: string) => `${WEBHOOKS}/${id}`],
        ['PATCH', (id: string) => `${WEBHOOKS}/${id}`, { ordered: true }],
        ['GET', (id: string) => `${WEBHOOKS}/${id}/secret`],
        ['POST', (id: string) => `${WEBHOOKS}/${id}/rotate`],
        ['POST', (id: string) => `${WEBHOOKS}/${id}/test`],
        ['POST', (id: string) => `${WEBHOOKS}/${id}/pause`],
        ['POST', (id: string) => `${WEBHOOKS}/${id}/resume`],
        ['GET', (id: string) => `${WEBHOOKS}/${id}/deliveries`],
        ['POST', (id: string) => `${WEBHOOKS}/${id}/replay`, selection],
      ],
    ],
    [
      'No delivery found',
      [made.deliveryId, `dlv_${unknown}`, 'x'],
      [
        ['GET', (id: string) => `/v1/deliveries/${id}`],
        ['POST', (id: string) => `/v1/deliveries/${id}/replay`],
      ],
    ],
    ['No event found', [made.eventId, `evt_${unknown}`, 'x'], [['GET', (id: string) => `/v1/events/${id}`]]],
    [
      'No replay found',
      [replay.id, `rpl_${unknown}`, 'x'],
      [['GET', (id: string) => `${WEBHOOKS}/${webhook}/replays/${id}`]],
    ],
  ] as const) {
    for (const [method, path, body] of calls) {
      for (const id of ids) {
        const answer = await service.call(method, path(String(id)), body);
        const got = [method, path(String(id)), answer.status, answer.body];
        // A value that cannot be decoded matches no webhook route.
        if (id === 'wh_%ZZ0') assert.equal(answer.status, 404);
        else assert.deepEqual(got, [method, path(String(id)), 404, { error }]);
      }
    }
  }
  const { events } = (await get('/v1/events?limit=250')).body as { events: Json[] };
  assert.ok(events.every((event) => event.id !== made.eventId));
  assert.equal((await get(`${WEBHOOKS}/${webhook}`, headers)).status, 200);
});

test('lists webhooks and events in pages, each with a link to the next', async () => {
  for (const [path, name] of [
    [WEBHOOKS, 'webhooks'],
    ['/v1/events', 'events'],
  ] as const) {
    await subscribe(['workflow_failed']);
    const ids = ({ body }: Answer) => ((body as Json)[name] as Json[]).map(({ id }) => id);
    const whole = ids(await get(`${path}?limit=250`));
    const paged: unknown[] = [];
    let next: string | undefined = `${path}?limit=2`;
    while (next !== undefined) {
      const page = await get(next);
      assert.ok(ids(page).length <= 2);
      paged.push(...ids(page));
      next = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
    }
    assert.ok(whole.length > 2);
    assert.deepEqual(paged.slice(0, whole.length), whole);
  }
});

test('lists every webhook in pages after the clock was set back', async (t) => {
  let behind = 0;
  const other = await startService({ clock: () => Date.now() - behind });
  t.after(() => other.stop());
  const made: unknown[] = [];
  for (const name of ['first', 'second', 'third']) {
    const wanted = { webhookUrl: `${receiver.url}/${name}`, events: ['workflow_failed'] };
    made.push(((await other.call('POST', WEBHOOKS, wanted)).body as Json).id);
    behind += 3_600_000;
  }
  const listed: unknown[] = [];
  for (let next: string | undefined = `${WEBHOOKS}?limit=1`; next !== undefined; ) {
    const { body, headers } = await other.call('GET', next);
    listed.push(...(body as { webhooks: Json[] }).webhooks.map(({ id }) => id));
    next = /^<([^>]+)>/.exec(headers.get('link') ?? '')?.[1];
  }
  assert.deepEqual(listed, made);
});

test('repeating a test or a replay with its idempotency key returns the first result', async () => {
  const made = (await post(WEBHOOKS, { webhookUrl: `${receiver.url}/keyed`, events: ['workflow_failed'] }))
    .body as Json;
  const path = `${WEBHOOKS}/${made.id}`;
  const key = { 'idempotency-key': 'once' };
  const tested = await post(`${path}/test`, undefined, key);
  assert.equal(tested.status, 200, JSON.stringify(tested.body));
  const { deliveryId } = tested.body as { deliveryId: string };
  for (const [to, body] of [
    [`${path}/test`, undefined],
    [`${path}/replay`, { deliveryIds: [deliveryId] }],
    [`${path}/replay`, { since: new Date(0).toISOString() }],
    [`/v1/deliveries/${deliveryId}/replay`, undefined],
  ] as const) {
    const [first, second] = [await post(to, body, key), await post(to, body, key)];
    assert.equal(first.status, 200, JSON.stringify(first.body));
    // The progress of the replay may have changed.
    const [one, other] = [first, second].map((answer) => answer.body as { replay?: Json });
    assert.deepEqual({ ...other, replay: other?.replay?.id }, { ...one, replay: one?.replay?.id });
    for (const bad of ['', 'x'.repeat(256)]) {
      assert.equal((await post(to, body, { 'idempotency-key': bad })).status, 400);
    }
  }
  // The order of fields does not matter.
  const selection = { since: new Date(0).toISOString(), states: ['dead', 'waiting'] };
  const turned = Object.fromEntries(Object.entries(selection).reverse());
  const [straight, reordered] = [selection, turned].map((body) =>
    post(`${path}/replay`, body, { 'idempotency-key': 'in any order' }),
  );
  assert.deepEqual([(await straight)?.status, (await reordered)?.status], [200, 200]);
  const [{ id: another }] = ((await get(`${path}/deliveries`)).body as { deliveries: [Json] }).deliveries;
  for (const body of [{ deliveryIds: [another] }, { since: new Date(1).toISOString() }]) {
    const reused = await post(`${path}/replay`, body, key);
    assert.deepEqual([reused.status, reused.headers.get('x-error-code')], [422, 'idempotency_key_reused']);
  }
  const { deliveries } = (await get(`${path}/deliveries`)).body as { deliveries: Json[] };
  assert.equal(deliveries.filter(({ origin }) => origin === 'test' || origin === 'event').length, 1);
});
