/** Changing where webhooks send, which events, and what people write about them: over the API. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

const HOOKS = '/v1/integrations/webhooks';

let service: TestService;
let receiver: Receiver;
let other: Receiver;

before(async () => {
  service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
  [receiver, other] = await Promise.all([startReceiver(), startReceiver()]);
});
after(async () => {
  await service.stop();
  await Promise.all([receiver.stop(), other.stop()]);
});

async function call(method: string, path: string, body?: unknown, headers = {}): Promise<Json> {
  const answer = await service.call(method, path, body, headers);
  assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body as Json;
}

async function refusal(path: string, body: unknown): Promise<[number, string | null, string]> {
  const answer = await service.call('PATCH', path, body);
  return [answer.status, answer.headers.get('x-error-code'), String((answer.body as Json).error)];
}

let made = 0;
async function create(more: Json = {}): Promise<{ path: string; webhook: Json }> {
  made += 1;
  const body = { webhookUrl: `${receiver.url}/${made}`, events: ['webhook_test'], ...more };
  const webhook = await call('POST', HOOKS, body);
  return { path: `${HOOKS}/${webhook.id}`, webhook };
}

test('waiting deliveries go to the new URL, with the same secret, and each attempt shows its URL', async () => {
  const { path, webhook } = await create();
  const { secret } = await call('GET', `${path}/secret`);
  const first = await call('POST', `${path}/test`);
  await receiver.until((all) => all.some(({ event }) => event.id === first.eventId), 'the first test');
  await call('POST', `${path}/pause`);
  const second = await call('POST', `${path}/test`);

  const answer = await call('PATCH', path, { url: `${other.url}/new` });
  assert.equal(
    answer.message,
    'Webhook updated: it sends to the new URL. It is still paused: resume it to send.',
  );
  await call('POST', `${path}/resume`);
  await other.until((all) => all.some(({ event }) => event.id === second.eventId), 'the second test');
  assert.ok(!receiver.received.some(({ event }) => event.id === second.eventId));
  assert.equal((await call('GET', `${path}/secret`)).secret, secret);
  const { attempts } = await call('GET', `/v1/deliveries/${first.deliveryId}`);
  assert.equal((attempts as { request: Json }[])[0]?.request.url, webhook.url);

  const { webhooks } = await call('GET', `${HOOKS}/list`);
  const listed = (webhooks as Json[]).find(({ id }) => id === webhook.id);
  assert.deepEqual(Object.keys(listed ?? {}), ['id', 'createdAt', 'url', 'events']);
  assert.equal(listed?.url, `${other.url}/new`);
});

test('what the old endpoint returns to a request in flight does not count for the new one', async (t) => {
  const arrived = Promise.withResolvers<ServerResponse>();
  const held = createServer((_, response) => arrived.resolve(response)).listen(0, '127.0.0.1');
  t.after(() => held.close());
  await once(held, 'listening');
  const { port } = held.address() as AddressInfo;
  const { path } = await create({ webhookUrl: `http://127.0.0.1:${port}/` });
  const first = await call('POST', `${path}/test`);
  const response = await arrived.promise;
  await call('PATCH', path, { url: `${other.url}/moved` });
  const second = await call('POST', `${path}/test`);
  const isReceived = (eventId: unknown) =>
    other.until((all) => all.some(({ event }) => event.id === eventId), 'it');
  await isReceived(second.eventId);

  // A webhook whose endpoint is gone would be unsubscribed.
  response.writeHead(410).end();
  await isReceived(first.eventId);
  assert.equal((await call('GET', path)).failingSince, null);
});

test('the secret is replaced if that is asked for', async () => {
  const { path } = await create();
  const { secret } = await call('GET', `${path}/secret`);
  const answer = await call('PATCH', path, { url: `${other.url}/rotated`, rotateSecret: true });
  assert.doesNotMatch(JSON.stringify(answer), /whsec_/);
  const rotated = (await call('GET', `${path}/secret`)).secret;
  assert.match(String(rotated), /^whsec_/);
  assert.notEqual(rotated, secret);
  await call('PATCH', path, { rotateSecret: false });
  assert.equal((await call('GET', `${path}/secret`)).secret, rotated);
});

test('the values of custom headers are not sent to another host, unless they are given again', async () => {
  const { path } = await create({ settings: { headers: { 'x-token': 'hush' } } });
  const [status, code, sentence] = await refusal(path, { url: `${other.url}/headers` });
  assert.deepEqual([status, code], [400, 'field_invalid']);
  assert.match(sentence, /^The new `url` has another origin, .*: set `headers` as well, or to null/);
  const near = await call('PATCH', path, { url: `${receiver.url}/headers/near` });
  assert.deepEqual((near.webhook as { settings: Json }).settings.headers, ['x-token']);
  const far = await call('PATCH', path, { url: `${other.url}/headers`, headers: null });
  assert.deepEqual((far.webhook as { settings: Json }).settings.headers, []);
});

test('a webhook has a description and labels, from its creation on', async () => {
  const texts = { name: 'Orders', description: 'First line\nsecond line', labels: ['customer:acme', 'Ä b'] };
  const { path, webhook } = await create(texts);
  assert.deepEqual([webhook.name, webhook.description, webhook.labels], Object.values(texts));
  await call('PATCH', path, { labels: [] });
  const { description, labels } = await call('GET', path);
  assert.deepEqual([description, labels], [texts.description, []]);
  assert.equal(((await call('PATCH', path, { description: null })).webhook as Json).description, null);
});

test('invalid texts, URLs and events are refused with a sentence', async () => {
  const { path } = await create();
  for (const [body, sentence] of [
    [{ description: '' }, /^`description` must be a string of 1 to 500 characters/],
    [{ description: 'x'.repeat(501) }, /^`description`/],
    [{ description: 'a\tb' }, /^`description`/],
    [{ labels: null }, /^`labels` must be an array/],
    [{ labels: Array.from({ length: 21 }, (_, n) => `l${n}`) }, /at most 20 labels, found 21/],
    [{ labels: ['a', ' b'] }, /^`labels\[1\]` must be a string of 1 to 64 characters/],
    [{ labels: ['x'.repeat(65)] }, /^`labels\[0\]`/],
    [{ labels: [7] }, /^`labels\[0\]`/],
    [{ labels: ['a', 'a'] }, /^`labels\[1\]` repeats another label/],
    [{ url: 'ftp://a.test/' }, /^`url` must be an absolute http:\/\/ or https:\/\/ URL/],
    [{ url: null }, /^`url` must be a string/],
    [{ events: [] }, /^`events` must contain 1 to 100 event names/],
    [{ events: ['job.finishd'] }, /did you mean "job\.finished"\?/],
    [{ rotateSecret: 'yes' }, /^`rotateSecret` must be true or false/],
    [{ webhookUrl: 'https://a.test/' }, /no field "webhookUrl"/],
    [{ url: 'mailto:ops@example.org' }, /SMTP/],
  ] as const) {
    const [status, , found] = await refusal(path, body);
    assert.match(found, sentence);
    assert.ok(status === 400 || status === 409, found);
  }
});

test('a URL that another webhook has is refused, and so is a change of a webhook that has changed', async () => {
  const { webhook } = await create({ workflowId: 'people' });
  const { path } = await create({ workflowId: 'people' });
  const [status, code, sentence] = await refusal(path, { url: webhook.url });
  assert.deepEqual([status, code], [409, 'webhook_exists']);
  assert.match(sentence, new RegExp(`^The webhook ${webhook.id} already has the same workflow, URL`));

  const tag = (await service.call('GET', path)).headers.get('etag') ?? '';
  await call('PATCH', path, { url: `${receiver.url}/tagged` }, { 'if-match': tag });
  const stale = await service.call('PATCH', path, { labels: ['x'] }, { 'if-match': tag });
  assert.equal(stale.status, 412);
});

test('new events of a webhook apply to what happens later', async () => {
  const { path, webhook } = await create({ workflowId: 'people', events: ['workflow_failed'] });
  await call('POST', '/v1/workflows/people/push', [{ id: '1' }]);
  await call('PATCH', path, { events: ['workflow_data_change'] });
  await call('POST', '/v1/workflows/people/push', [{ id: '2' }]);
  const isChange = ({ event }: { event: { type: string } }) => event.type === 'workflow_data_change';
  await receiver.until((all) => all.some(isChange), 'the change');
  const { deliveries } = await call('GET', `${path}/deliveries`);
  assert.deepEqual(
    (deliveries as Json[]).map(({ eventType }) => eventType),
    ['workflow_data_change'],
  );
  const { lines } = await call('GET', `/v1/audit?target=${webhook.id}&action=webhooks.change`);
  assert.deepEqual((lines as Json[])[0]?.details, {
    before: { url: webhook.url, events: ['workflow_failed'] },
    after: { url: webhook.url, events: ['workflow_data_change'] },
  });
});
