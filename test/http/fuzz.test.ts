/**
 * Sends 2,000 generated requests to the five operations: no response may have a status or a body outside the contract.
 * Set FUZZ_SEED to the seed of a failure to repeat it.
 */
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { data, LIST, queue, SUBSCRIBE, UNSUBSCRIBE } from '../contract/world.ts';
import { assertAnswer, type Got, parsed, report, type Sent, send } from '../support/net/wire.ts';
import { startService } from '../support/service.ts';

const REQUESTS = 2_000;
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);

const service = await startService({
  workflows: {
    'default/people.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
    'default/held.yaml': "source: { type: command, command: [sleep, '600'] }\n",
    'other/private.yaml': "source: { type: command, command: [sleep, '600'] }\n",
  },
});
const agent = new Agent({ keepAlive: true, maxSockets: 4 });
after(async () => {
  agent.destroy();
  await service.stop();
});
const subscribed = await service.call('POST', SUBSCRIBE, {
  workflowId: 'people',
  webhookUrl: 'http://127.0.0.1:9/',
  events: ['x'],
});
const webhookId = subscribed.headers.get('x-webhook-id') ?? '';

/** Characters allowed in a request target or a header. The client refuses other characters. */
const visible = fc.string({
  unit: fc
    .oneof(fc.integer({ min: 0x21, max: 0x7e }), fc.integer({ min: 0x80, max: 0xff }))
    .map((code) => String.fromCharCode(code)),
});
const encoded = fc.string({ unit: 'binary' }).map((text) => encodeURIComponent(text.toWellFormed()));
const ascii = fc.string({ unit: fc.constantFrom(...'abcXYZ019%/.?&=#+-_~;:@!') });

const workflowId = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('people', 'held') },
  fc.constantFrom(
    'private',
    'unknown',
    '%70eople',
    '%ZZ',
    '%FF',
    '%00',
    '..',
    '..%2f',
    '%2e%2e',
    '',
    'x'.repeat(5_000),
  ),
  encoded,
  ascii,
);
const anyWebhookId = fc.oneof(
  fc.constantFrom(webhookId, 'wh_01kadz8v3s7v0s8e1c3q5m2n4p', 'wh_', '', '%ZZ', '%FF', 'wh_%00', '..'),
  encoded,
  ascii,
);

const operation = fc.oneof(
  workflowId.map((id) => ({ method: 'GET', path: data(id) })),
  workflowId.map((id) => ({ method: 'POST', path: queue(id) })),
  fc.constant({ method: 'GET', path: LIST }),
  { weight: 3, arbitrary: fc.constant({ method: 'POST', path: SUBSCRIBE }) },
  fc.constant({ method: 'DELETE', path: UNSUBSCRIBE }),
  anyWebhookId.map((id) => ({ method: 'DELETE', path: `${UNSUBSCRIBE}/${id}` })),
);

const query = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  workflowId.map((id) => `?workflowId=${id}`),
  anyWebhookId.map((id) => `?webhookId=${id}`),
  fc.constantFrom('?webhookUrl=http://127.0.0.1:9/', '?webhookUrl=', '?', '?&&=', '?__proto__=1'),
  visible.map((text) => `?${text}`),
);

/** Slightly damages a path, but usually keeps it. */
const mangle = fc.oneof(
  { weight: 8, arbitrary: fc.constant((path: string) => path) },
  fc.constant((path: string) => `${path}/`),
  fc.constant((path: string) => path.replace('/', '//')),
  fc.constant((path: string) => path.toUpperCase()),
  fc.nat({ max: 30 }).map((at) => (path: string) => path.slice(0, at) + path.slice(at + 1)),
  fc.nat({ max: 30 }).map((at) => (path: string) => {
    const code = path.charCodeAt(at);
    return Number.isNaN(code) ? path : `${path.slice(0, at)}%${code.toString(16)}${path.slice(at + 1)}`;
  }),
);

const maybe = <T>(good: T, others: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(good as unknown) }, others);
const fields = fc
  .record({
    workflowId: maybe('people', fc.oneof(fc.constantFrom('private', '', null, 7), fc.jsonValue())),
    webhookUrl: maybe(
      'http://127.0.0.1:9/',
      fc.oneof(
        fc.jsonValue(),
        fc.string({ unit: 'binary' }).map((text) => `http://127.0.0.1/${text}`),
      ),
    ),
    events: maybe(
      ['x'],
      fc.oneof(fc.jsonValue(), fc.array(fc.string({ unit: 'binary' }), { maxLength: 110 })),
    ),
    webhookId: fc.oneof(
      { weight: 5, arbitrary: fc.constant(undefined) },
      fc.constant(webhookId),
      fc.jsonValue(),
    ),
  })
  .map((value) => JSON.stringify(value));
const body = fc.oneof(
  { weight: 2, arbitrary: fc.constant(undefined) },
  { weight: 6, arbitrary: fields },
  { weight: 1, arbitrary: fields.map((text) => text.slice(0, -1)) },
  { weight: 2, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: fc.integer({ min: 65_000, max: 70_000 }).map((size) => '{}'.padEnd(size)) },
);

const header = (name: string, values: fc.Arbitrary<string>) => values.map((value) => [name, value] as const);
const key = fc.oneof(
  { weight: 9, arbitrary: fc.constant([['x-api-key', service.key] as const]) },
  fc.constantFrom([], [['authorization', `Bearer ${service.key}`] as const]),
  header('x-api-key', visible).map((one) => [one]),
);
const contentType = fc.oneof(
  { weight: 6, arbitrary: fc.constant('application/json') },
  fc.constantFrom('application/json; charset=utf-8', 'application/vnd.x+json', 'text/plain', 'nonsense', ''),
  visible,
);
const extra = fc.oneof(
  header('accept', fc.oneof(fc.constantFrom('text/html', '*/*', 'application/xml'), visible)),
  header('idempotency-key', fc.oneof(fc.constantFrom('a', 'b', ''), visible)),
  header('x-http-method-override', fc.constantFrom('DELETE', 'GET', 'POST')),
  header('x-request-id', visible),
  header('cookie', visible),
  header('if-none-match', visible),
  header('accept-version', visible),
);

const request: fc.Arbitrary<Sent> = fc
  .record({
    operation,
    query,
    mangle,
    method: fc.oneof(
      { weight: 9, arbitrary: fc.constant(undefined) },
      fc.constantFrom(
        'GET',
        'HEAD',
        'POST',
        'PUT',
        'PATCH',
        'DELETE',
        'OPTIONS',
        'TRACE',
        'PURGE',
        'PROPFIND',
      ),
    ),
    key,
    contentType: fc.option(contentType, { freq: 8 }),
    extras: fc.uniqueArray(extra, { maxLength: 3, selector: ([name]) => name }),
    body,
  })
  .map(({ operation, query, mangle, method, key, contentType, extras, body }) => ({
    method: method ?? operation.method,
    path: mangle(operation.path) + query,
    headers: [...key, ...(contentType === null ? [] : [['content-type', contentType] as const]), ...extras],
    ...(body === undefined ? {} : { body }),
  }));

test(`${REQUESTS} generated requests get responses of the contract (FUZZ_SEED=${SEED})`, {
  timeout: 180_000,
}, async () => {
  const seen = new Map<string, number>();
  const property = fc.asyncProperty(request, async (sent) => {
    const got = await send(service.url, sent, agent);
    seen.set(`${sent.method} ${got.status}`, (seen.get(`${sent.method} ${got.status}`) ?? 0) + 1);
    assertContract(sent, got);
  });
  await fc.assert(property, { numRuns: REQUESTS, seed: SEED });

  // A generator whose requests all fail the first check would prove nothing.
  for (const response of [
    'GET 200',
    'GET 404',
    'POST 200',
    'POST 400',
    'POST 401',
    'DELETE 200',
    'DELETE 400',
    'DELETE 404',
  ]) {
    assert.ok(
      seen.has(response),
      `no request got the response ${response}: ${JSON.stringify(Object.fromEntries(seen))}`,
    );
  }
});

function assertContract(sent: Sent, got: Got): void {
  assertAnswer(got);
  assert.ok(
    [200, 204, 400, 401, 404, 405].includes(got.status),
    `a status outside the contract\n${report(got)}`,
  );
  assert.equal(got.status === 204, sent.method === 'OPTIONS' && got.status < 400, report(got));
  if (got.status !== 200 || sent.method === 'HEAD') return;
  const body = parsed(got);
  const shape = `a different shape\n${report(got)}`;
  // An id that starts with a question mark leaves the path of an operation outside the contract.
  if (/^\/v1\/workflows(\/[^/]*)?\/?$/.test(sent.path.split('?')[0] ?? '')) return;
  if (sent.method !== 'GET') {
    assert.deepEqual(Object.keys(body as object), ['message'], shape);
    assert.equal(typeof (body as { message: unknown }).message, 'string', shape);
  } else if (Array.isArray(body)) {
    for (const record of body) assert.equal(typeof (record as { id: unknown }).id, 'string', shape);
  } else {
    assert.deepEqual(Object.keys(body as object), ['webhooks'], shape);
    for (const one of (body as { webhooks: object[] }).webhooks) {
      assert.deepEqual(Object.keys(one), ['id', 'createdAt', 'url', 'events'], shape);
    }
  }
}
