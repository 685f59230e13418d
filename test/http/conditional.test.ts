/** Conditional requests, caching headers, and requests from pages of other origins. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;
interface Described {
  paths: Record<string, { get?: { security: object[] } }>;
}

const PUSH = 'source: { type: push }\n';
const APP = 'https://app.example.com';

let service: TestService;
let webhook: string;

before(async () => {
  service = await startService({
    workflows: { 'default/people.yaml': PUSH },
    settings: { FLOWHOOK_CORS_ORIGINS: `${APP}, http://localhost:3000` },
  });
  const subscribed = await post('/v1/integrations/webhooks/subscribe', {
    workflowId: 'people',
    webhookUrl: 'http://127.0.0.1:9/',
    events: ['workflow_failed'],
  });
  webhook = String(subscribed.headers.get('location'));
});
after(() => service.stop());

const get = (path: string, headers = {}) => service.call('GET', path, undefined, headers);
const post = (path: string, body?: unknown) => service.call('POST', path, body);
const patch = (body: unknown, tag: string | null) =>
  service.call('PATCH', webhook, body, tag === null ? {} : { 'if-match': tag });
const tagOf = async (path: string) => (await get(path)).headers.get('etag') ?? assert.fail('no ETag');

test('single resources have an ETag, and return 304 to clients that have them', async () => {
  const pushed = await post('/v1/workflows/people/push', [{ id: 1 }]);
  const job = `/v1/jobs/${pushed.headers.get('x-job-id')}`;
  const isKept = async (path: string) => {
    const first = await get(path);
    const tag = first.headers.get('etag') ?? '';
    assert.match(tag, /^"[\w.-]+"$/, path);
    const again = await get(path, { 'if-none-match': `"other", W/${tag}` });
    assert.deepEqual([again.status, again.body, again.headers.get('etag')], [304, undefined, tag], path);
    assert.equal((await get(path, { 'if-none-match': '"other"' })).status, 200, path);
  };
  for (const path of [webhook, '/v1/workflows/people', job]) await isKept(path);
  // A delivery changes the representation of its webhook.
  const { deliveryId, eventId } = (await post(`${webhook}/test`)).body as Json;
  await isKept(`/v1/events/${eventId}`);
  assert.match(await tagOf(`/v1/deliveries/${deliveryId}`), /^"/);
});

test('a change with If-Match is made only to the version that the client has read', async () => {
  const seen = await tagOf(webhook);
  assert.equal((await patch({ timeoutMs: 2_000 }, seen)).status, 200);
  const late = await patch({ timeoutMs: 3_000 }, seen);
  assert.equal(late.status, 412);
  assert.match(String((late.body as Json).error), /read it again/i);
  const timeout = async () => ((await get(webhook)).body as { settings: Json }).settings.timeoutMs;
  assert.equal(await timeout(), 2_000);

  const newer = await tagOf(webhook);
  // Sealed values differ each time, so a change of only the value of a header is detected.
  assert.equal((await patch({ headers: { 'x-a': '1' } }, newer)).status, 200);
  assert.equal((await patch({ headers: { 'x-a': '2' } }, newer)).status, 412);
  assert.equal((await patch({ timeoutMs: 4_000 }, '*')).status, 200);
  assert.equal((await patch({ timeoutMs: 5_000 }, null)).status, 200);
});

test('only one of several concurrent changes to the same version is made', async () => {
  const seen = await tagOf(webhook);
  const responses = await Promise.all(
    Array.from({ length: 10 }, (_, n) => patch({ timeoutMs: 6_000 + n }, seen)),
  );
  const statuses = responses.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, ...Array.from({ length: 9 }, () => 412)]);
});

test('a change of a webhook’s state does not prevent a change of its settings', async () => {
  const seen = await tagOf(webhook);
  await post(`${webhook}/pause`);
  assert.notEqual(await tagOf(webhook), seen);
  assert.equal((await patch({ ordered: true }, seen)).status, 200);
});

test('no response of a route that needs a key may be kept by a shared cache', async () => {
  const needKey = Object.entries(((await get('/openapi.json')).body as Described).paths).flatMap(
    ([path, methods]) => (methods.get !== undefined && methods.get.security.length > 0 ? [path] : []),
  );
  assert.ok(needKey.length > 30);
  for (const template of needKey) {
    if (template === '/v1/stream') continue;
    const path = template
      .replace('{workflowId}', 'people')
      .replace('{webhookId}', 'wh_none')
      .replace(/\{\w+\}/g, 'none');
    for (const key of [service.key, 'wrong']) {
      const { headers, status } = await get(path, { 'x-api-key': key });
      const expected = headers.has('etag') ? 'private, no-cache' : 'private, no-store';
      assert.equal(headers.get('cache-control'), expected, `${path} ${status}`);
      assert.match(headers.get('vary') ?? '', /\bx-api-key\b/, path);
    }
  }
});

test('only pages of the configured origins may call the API', async () => {
  for (const [origin, allowed] of [
    [APP, APP],
    ['http://localhost:3000', 'http://localhost:3000'],
    ['https://evil.example.com', null],
    ['null', null],
  ] as const) {
    for (const path of ['/v1/workflows', '/v1/workflows/none', '/v1/workflows/people/data', '/nowhere']) {
      const { headers } = await get(path, { origin });
      assert.equal(headers.get('access-control-allow-origin'), allowed, path);
      assert.equal(headers.get('access-control-allow-credentials'), null);
      assert.match(headers.get('vary') ?? '', /\borigin\b/, path);
    }
  }
  const preflight = await fetch(`${service.url}${webhook}`, {
    method: 'OPTIONS',
    headers: { origin: APP, 'access-control-request-method': 'PATCH' },
  });
  assert.equal(preflight.status, 204);
  assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /PATCH/);
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /x-api-key/);
});

test('by default no page of another origin may call the API', async () => {
  const closed = await startService();
  try {
    const answer = await closed.call('GET', '/v1/workflows', undefined, { origin: APP });
    assert.equal(answer.headers.get('access-control-allow-origin'), null);
    assert.equal(answer.headers.get('vary'), 'x-api-key');
  } finally {
    await closed.stop();
  }
});
