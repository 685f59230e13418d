/** Rate limits over HTTP, with windows of one day: no window ends during a test. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mintKey } from '../../src/teams/keys.ts';
import { startService, type TestService } from '../support/service.ts';

const PER_KEY = 20;
const PER_ADDRESS = 40;
const DAY_S = 86_400;

let service: TestService;
let unlimited: TestService;

before(async () => {
  service = await startService({
    settings: {
      FLOWHOOK_RATE_LIMIT_PER_KEY: `${PER_KEY}/24h`,
      FLOWHOOK_RATE_LIMIT_PER_ADDRESS: `${PER_ADDRESS}/24h`,
      FLOWHOOK_TRUST_PROXY: 'loopback',
      FLOWHOOK_CORS_ORIGINS: 'https://app.example.com',
    },
  });
  unlimited = await startService();
});
after(async () => {
  await Promise.all([service.stop(), unlimited.stop()]);
});

async function newKey(): Promise<string> {
  const { id: teamId } = service.team;
  return (await mintKey(service.store, { teamId, name: 'a test', scopes: ['read'], expiresAt: null })).key;
}

interface Got {
  status: number;
  body: unknown;
  /** Remaining requests by policy. */
  left: Record<string, number>;
  headers: Headers;
}

/** A call that a trusted proxy forwards for a client address. */
async function ask(
  path: string,
  { key, from, headers = {} }: { key?: string; from: string; headers?: Record<string, string> },
): Promise<Got> {
  const response = await fetch(service.url + path, {
    headers: { ...(key === undefined ? {} : { 'x-api-key': key }), 'x-forwarded-for': from, ...headers },
  });
  const text = await response.text();
  const items = (response.headers.get('ratelimit') ?? '').matchAll(/"(\w+)";r=(\d+);t=(\d+)/g);
  const left: Record<string, number> = {};
  for (const [, policy = '', count, seconds] of items) {
    left[policy] = Number(count);
    assert.ok(Number(seconds) >= 1 && Number(seconds) <= DAY_S);
  }
  return { status: response.status, headers: response.headers, body: text, left };
}

function assertLimited({ status, headers, body }: Got, sentence: RegExp): void {
  assert.equal(status, 429);
  assert.equal(headers.get('x-error-code'), 'rate_limited');
  assert.match((JSON.parse(String(body)) as { error: string }).error, sentence);
  const seconds = Number(headers.get('retry-after'));
  assert.ok(seconds >= 1 && seconds <= DAY_S, `retry-after: ${seconds}`);
}

test('by default there are no limits and no headers about limits', async () => {
  for (let n = 0; n < 100; n++) {
    const { status, headers } = await unlimited.call('GET', '/v1/me');
    assert.equal(status, 200);
    assert.equal(headers.get('ratelimit'), null);
    assert.equal(headers.get('ratelimit-policy'), null);
  }
});

test('limits the requests of a key from any address, separately from other keys', async () => {
  const [key, other] = [await newKey(), await newKey()];
  for (let n = 1; n <= PER_KEY; n++) {
    const got = await ask('/v1/me', { key, from: `203.0.113.${n}` });
    assert.equal(got.status, 200);
    assert.deepEqual(got.left, { address: PER_ADDRESS - 1, key: PER_KEY - n });
    assert.equal(
      got.headers.get('ratelimit-policy'),
      `"address";q=${PER_ADDRESS};w=${DAY_S}, "key";q=${PER_KEY};w=${DAY_S}`,
    );
  }
  const refused = await ask('/v1/me', { key, from: '203.0.113.99' });
  assertLimited(refused, /with this key/);
  assert.equal(refused.left.key, 0);
  assert.equal((await ask('/v1/me', { key: other, from: '203.0.113.99' })).status, 200);
});

test('errors count, and have the headers about limits', async () => {
  const key = await newKey();
  const got = await ask('/v1/jobs/job_nobody', { key, from: '203.0.114.1' });
  assert.equal(got.status, 404);
  assert.deepEqual(got.left, { address: PER_ADDRESS - 1, key: PER_KEY - 1 });
  assert.deepEqual((await ask('/no-such-path', { from: '203.0.114.1' })).left, { address: PER_ADDRESS - 2 });
});

test('counts an address before the key is looked up, and a request with an invalid key ten times', async () => {
  const from = '203.0.115.1';
  const tries: number[] = [];
  for (let n = 0; n < 4; n++) {
    const got = await ask('/v1/me', { key: `wrong key ${n}`, from });
    assert.equal(got.status, 401);
    tries.push(got.left.address ?? -1);
  }
  assert.deepEqual(tries, [30, 20, 10, 0]);
  assertLimited(await ask('/v1/me', { key: 'wrong key 5', from }), /from this address/);
  const key = await newKey();
  const refused = await ask('/v1/me', { key, from });
  assertLimited(refused, /from this address/);
  assert.equal(refused.left.key, undefined, 'the key was not looked up');
  assert.equal((await ask('/v1/me', { key, from: '203.0.115.2' })).left.key, PER_KEY - 1);
});

test('health checks are never counted', async () => {
  const from = '203.0.116.1';
  for (let n = 0; n < 4; n++) assert.equal((await ask('/v1/me', { from })).status, 401);
  assertLimited(await ask('/openapi.json', { from }), /from this address/);
  for (const path of ['/livez', '/readyz']) {
    const got = await ask(path, { from });
    assert.equal(got.status, 200);
    assert.deepEqual(got.left, {});
  }
});

test('counts the addresses of one IPv6 /64 as one, and a mapped IPv4 address as the IPv4 address', async () => {
  assert.equal((await ask('/livez.', { from: '2001:db8:1:2::1' })).left.address, PER_ADDRESS - 1);
  assert.equal((await ask('/livez.', { from: '2001:db8:1:2:3:4:5:6' })).left.address, PER_ADDRESS - 2);
  assert.equal((await ask('/livez.', { from: '2001:db8:1:3::1' })).left.address, PER_ADDRESS - 1);
  assert.equal((await ask('/livez.', { from: '203.0.117.1' })).left.address, PER_ADDRESS - 1);
  assert.equal((await ask('/livez.', { from: '::ffff:203.0.117.1' })).left.address, PER_ADDRESS - 2);
});

test('ignores addresses that the client itself puts into `x-forwarded-for`', async () => {
  await ask('/nothing', { from: '203.0.118.1' });
  const got = await ask('/nothing', { from: '198.51.100.7, 203.0.118.1' });
  assert.equal(got.left.address, PER_ADDRESS - 2);
});

test('a dashboard session counts as the key that it was started with', async () => {
  const key = await newKey();
  const own = { origin: service.url, 'x-forwarded-for': '203.0.119.1' };
  const signedIn = await fetch(`${service.url}/ui/api/session`, {
    method: 'POST',
    headers: { ...own, 'content-type': 'application/json' },
    body: JSON.stringify({ key }),
  });
  assert.equal(signedIn.status, 200, await signedIn.text());
  const cookie = (signedIn.headers.getSetCookie()[0] ?? '').split(';')[0] ?? '';
  const bySession = await ask('/ui/api/v1/me', { from: '203.0.119.1', headers: { cookie, ...own } });
  assert.equal(bySession.status, 200);
  assert.equal(bySession.left.key, PER_KEY - 1);
  assert.equal((await ask('/v1/me', { key, from: '203.0.119.2' })).left.key, PER_KEY - 2);
});

test('pages of other origins may read the headers about limits', async () => {
  const { headers } = await ask('/nothing', {
    from: '203.0.120.1',
    headers: { origin: 'https://app.example.com' },
  });
  assert.match(headers.get('access-control-expose-headers') ?? '', /\bratelimit, ratelimit-policy\b/);
});
