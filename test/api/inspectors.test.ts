/** Inspectors: the requests they store, the signatures they check, and the responses they send. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Flowhook, type Inspector, NotFound } from '../../client/src/flowhook-client.ts';
import { MAX_INSPECTORS } from '../../src/model/inspector.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { startService, type TestService } from '../support/service.ts';

let service: TestService;
let flowhook: Flowhook;

before(async () => {
  service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
  flowhook = new Flowhook({ url: service.url, key: service.key, retries: 0 });
});
after(() => service.stop());

/** Polls until there is a request with this number. */
async function received(id: string, number: number) {
  const deadline = performance.now() + 90_000;
  while (performance.now() < deadline) {
    const { items } = await flowhook.inspectors.requests(id, { limit: 1 }).page();
    const [newest] = items;
    if (newest !== undefined && newest.number >= number) return newest;
  }
  return assert.fail(`Waited 90 s for request ${number}`);
}

/** Subscribes an inspector to events of all workflows. */
async function subscribed(inspector: Inspector): Promise<string> {
  return (await flowhook.webhooks.create({ url: inspector.url, events: ['workflow_finished'] })).id;
}

test('stores a webhook request unchanged, with the signer', async () => {
  const made = await flowhook.inspectors.create();
  assert.equal(made.url, `${service.url}/inspect/${made.id}`);
  assert.deepEqual([made.status, made.delayMs, made.received, made.refusal], [204, 0, 0, null]);
  assert.equal(Date.parse(made.expiresAt) - Date.parse(made.createdAt), 86_400_000);
  const webhookId = await subscribed(made);
  const { eventId, deliveryId } = await flowhook.webhooks.test(webhookId);
  const one = await received(made.id, 1);
  assert.deepEqual(
    [one.method, one.path, one.headers['webhook-id'], one.truncated],
    ['POST', `/inspect/${made.id}`, eventId, false],
  );
  assert.equal(JSON.parse(one.body).id, eventId);
  assert.equal(one.bodyBytes, Buffer.byteLength(one.body));
  assert.deepEqual(one.signature, {
    verdict: 'valid',
    message: `Signed with the secret of webhook ${webhookId} (v1)`,
    webhookId,
  });
  assert.equal((await flowhook.inspectors.get(made.id)).received, 1);
  let delivery = await flowhook.deliveries.get(deliveryId);
  while (delivery.state === 'waiting') delivery = await flowhook.deliveries.get(deliveryId);
  assert.equal(delivery.lastAttempt?.status, 204);

  await flowhook.webhooks.rotate(webhookId, { overlapHours: 1 });
  await flowhook.webhooks.test(webhookId);
  assert.equal((await received(made.id, 2)).signature.verdict, 'valid');
});

test('verdicts: absent, invalid, expired, and valid by an earlier secret or only by the team key', async () => {
  const made = await flowhook.inspectors.create();
  const webhookId = await subscribed(made);
  const oldSecret = await flowhook.webhooks.secret(webhookId);
  const seconds = () => Math.floor(Date.now() / 1_000);
  const signed = (body: string, secret: string, timestamp = seconds()) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
      .update(`msg_1.${timestamp}.${body}`)
      .digest('base64')}`,
  });
  let number = 0;
  const judge = async (body: string, headers: Record<string, string>) => {
    assert.equal((await fetch(made.url, { method: 'POST', body, headers })).status, 204);
    number += 1;
    const { signature } = await received(made.id, number);
    return [signature.verdict, signature.webhookId, signature.message] as const;
  };
  assert.deepEqual((await judge('{}', {})).slice(0, 2), ['absent', null]);
  assert.match((await judge('{}', { 'webhook-id': 'x' }))[2], /no header webhook-timestamp and no header/);
  assert.deepEqual((await judge('{}', signed('{}', oldSecret))).slice(0, 2), ['valid', webhookId]);
  const late = await judge('{}', signed('{}', oldSecret, seconds() - 3_600));
  assert.deepEqual(late.slice(0, 2), ['expired', webhookId]);
  assert.match(late[2], /but the timestamp is 36\d\d s in the past: receivers reject/);
  assert.equal((await judge('{ }', signed('{}', oldSecret)))[0], 'invalid');
  assert.match(
    (await judge('{}', { ...signed('{}', oldSecret), 'webhook-timestamp': 'now' }))[2],
    /not a number/,
  );
  await flowhook.webhooks.rotate(webhookId, { overlapHours: 1 });
  assert.match((await judge('{}', signed('{}', oldSecret)))[2], /the secret before the last rotation/);
  await flowhook.webhooks.rotate(webhookId, { overlapHours: 0 });
  assert.equal((await judge('{}', signed('{}', oldSecret)))[0], 'invalid');
  const long = 'x'.repeat(70_000);
  assert.match(
    (await judge(long, signed(long, oldSecret)))[2],
    /larger than any body that this service sends/,
  );

  // For another team, the same signature is unknown.
  await flowhook.webhooks.test(webhookId);
  const { body, headers } = await received(made.id, number + 1);
  const { id: teamId } = await service.store.teams.ensure({ slug: 'other' });
  const scopes = ['webhooks'] as const;
  const { key } = await mintKey(service.store, { teamId, name: '', scopes, expiresAt: null });
  const other = new Flowhook({ url: service.url, key });
  const theirs = await other.inspectors.create();
  const copied = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('webhook-')));
  await fetch(theirs.url, { method: 'POST', body, headers: copied });
  const [seen] = await other.inspectors.requests(theirs.id).take(1);
  assert.equal(seen?.signature.verdict, 'invalid');
  await assert.rejects(other.inspectors.get(made.id), NotFound);
  await assert.rejects(other.inspectors.requests(made.id).page(), NotFound);
  await assert.rejects(other.inspectors.update(made.id, { status: 200 }), NotFound);
  await assert.rejects(other.inspectors.delete(made.id), NotFound);
});

test('stores any method, binary bodies and the start of long bodies, and lists requests in pages', async () => {
  const made = await flowhook.inspectors.create({ status: 418 });
  const send = async (method: string, body?: RequestInit['body']) => {
    const answer = await fetch(`${made.url}?a=1`, { method, ...(body === undefined ? {} : { body }) });
    await answer.text();
    return answer;
  };
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'POST']) {
    const answer = await send(method);
    assert.equal(answer.status, 418, method);
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/);
  }
  await send('POST', Buffer.from([0xff, 0x00, 0x41]));
  await send('POST', 'ä'.repeat(50_000));
  // Longer than the service reads.
  assert.equal((await send('POST', Buffer.alloc(2_000_000, 'x'))).headers.get('connection'), 'close');
  const all = await flowhook.inspectors.requests(made.id, { limit: 4 }).take(20);
  assert.deepEqual(
    all.map(({ number }) => number),
    [10, 9, 8, 7, 6, 5, 4, 3, 2, 1],
  );
  const [longest, long, binary] = all;
  assert.equal(all.at(-2)?.method, 'HEAD');
  assert.equal(all.at(-1)?.path, `/inspect/${made.id}?a=1`);
  assert.deepEqual([long?.truncated, long?.bodyBytes, long?.body.length], [true, 100_000, 32_768]);
  assert.deepEqual([longest?.truncated, longest?.body.length], [true, 65_536]);
  assert.deepEqual([binary?.bodyBytes, binary?.body.at(0), binary?.body.at(2)], [3, '\ufffd', 'A']);
  assert.equal((await flowhook.inspectors.requests(made.id, { after: 8 }).take(9)).length, 2);
});

test('its response can be changed: a 410 unsubscribes, a late response is a timeout', async () => {
  const made = await flowhook.inspectors.create({ delayMs: 20_000 });
  const webhookId = await subscribed(made);
  await flowhook.webhooks.update(webhookId, { timeoutMs: 1_000 });
  const { deliveryId } = await flowhook.webhooks.test(webhookId);
  let delivery = await flowhook.deliveries.get(deliveryId);
  while (delivery.lastAttempt === null) delivery = await flowhook.deliveries.get(deliveryId);
  assert.equal(delivery.lastAttempt.outcome, 'timeout');
  const changed = await flowhook.inspectors.update(made.id, { status: 410, delayMs: 0 });
  assert.deepEqual([changed.status, changed.delayMs], [410, 0]);
  await flowhook.deliveries.replay(deliveryId);
  while ((await flowhook.webhooks.list()).some(({ id }) => id === webhookId));
  for (const bad of [{ status: 199 }, { status: 600 }, { delayMs: 20_001 }, { delayMs: 0.5 }, {}]) {
    await assert.rejects(flowhook.inspectors.update(made.id, bad), { code: 'field_invalid' });
  }
});

test('erasing a person also erases stored requests', async () => {
  const made = await flowhook.inspectors.create();
  const { webhookId } = await flowhook.webhooks.subscribe({
    workflowId: 'people',
    url: made.url,
    events: ['workflow_data_change'],
  });
  await flowhook.workflows.push('people', [{ id: '7', email: 'ada@example.com' }]);
  assert.match((await received(made.id, 1)).body, /ada@example\.com/);
  await fetch(`${made.url}?to=ada@example.com`, { method: 'POST', body: 'nothing' });
  await received(made.id, 2);
  await flowhook.webhooks.unsubscribe(webhookId);
  const report = await flowhook.workflows.erase('people', { id: '7' });
  assert.ok(report.found.some(({ place }) => place === 'inspectedBody'));
  assert.equal((await flowhook.inspectors.requests(made.id).take(2))[1]?.body, '[erased]');
});

test('deleted and unknown inspectors accept no requests', async () => {
  const made = await flowhook.inspectors.create();
  await fetch(made.url, { method: 'POST' });
  assert.equal((await flowhook.inspectors.delete(made.id)).message, 'Inspector deleted');
  for (const url of [made.url, `${service.url}/inspect/insp_0`, `${service.url}/inspect/%00`]) {
    const answer = await fetch(url, { method: 'POST', body: 'x' });
    assert.deepEqual([answer.status, answer.headers.get('x-error-code')], [404, 'inspector_not_found']);
  }
  await assert.rejects(flowhook.inspectors.delete(made.id), NotFound);
});

test('limits the inspectors of a team and the request rate of an inspector', async () => {
  const left = MAX_INSPECTORS - (await flowhook.inspectors.list()).length;
  for (let n = 0; n < left; n++) await flowhook.inspectors.create();
  await assert.rejects(flowhook.inspectors.create(), { name: 'Conflict', code: 'inspector_limit' });
  const [one] = await flowhook.inspectors.list();
  assert.ok(one);
  const send = () => fetch(one.url, { method: 'POST', body: 'x' });
  const answers = await Promise.all(Array.from({ length: 300 }, send));
  const refused = answers.find(({ status }) => status === 503);
  assert.equal(refused?.headers.get('retry-after'), '1');
});

test('the stream reports new requests', async () => {
  const [one] = await flowhook.inspectors.list();
  assert.ok(one);
  await flowhook.inspectors.update(one.id, { delayMs: 0 });
  const abort = new AbortController();
  const news = flowhook.stream({ signal: abort.signal });
  const heard = (async () => {
    for await (const { kind, ids } of news) if (kind === 'inspectors') return ids;
    return undefined;
  })();
  let isHeard = false;
  void heard.finally(() => (isHeard = true));
  while (!isHeard) await (await fetch(one.url, { method: 'POST' })).text();
  assert.deepEqual(await heard, [one.id]);
  abort.abort();
});

test('reports that the network policy blocks deliveries, also in the delivery', async () => {
  const closed = await startService({ settings: { FLOWHOOK_ALLOW_NETWORKS: 'none' } });
  try {
    const client = new Flowhook({ url: closed.url, key: closed.key });
    const made = await client.inspectors.create();
    assert.match(made.refusal ?? '', /^Deliveries will be refused: 127\.0\.0\.1 .*FLOWHOOK_ALLOW_NETWORKS/);
    assert.equal((await client.inspectors.list())[0]?.refusal, made.refusal);
    // Other senders are not affected.
    assert.equal((await fetch(made.url, { method: 'POST' })).status, 204);
  } finally {
    await closed.stop();
  }
});
