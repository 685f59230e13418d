/** Resolution of names, with a name server on loopback. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type NameServer, startNameServer } from '../../test/support/net/name-server.ts';
import {
  candidates,
  createResolver,
  parseHosts,
  parseResolvConf,
  ResolveError,
  type Resolver,
} from './resolver.ts';

/** The addresses that the name server returns. */
const ZONE: Record<string, string[]> = {
  'both.example': ['192.0.2.7', '2001:db8::7'],
  'six.example': ['2001:db8::6'],
  'short.corp.example': ['192.0.2.9'],
  'a.b.corp.example': ['192.0.2.10'],
};
let server: NameServer;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-resolver-'));
  await writeFile(join(directory, 'hosts'), '127.0.0.9 crm.internal CRM # the CRM\n::9 crm.internal\n');
  await writeFile(join(directory, 'resolv.conf'), 'search corp.example other.example\n');
  server = await startNameServer((name) =>
    name === 'fails.example' ? 'fails' : name === 'silent.example' ? 'silent' : ZONE[name],
  );
});

after(async () => {
  await server.stop();
  await rm(directory, { recursive: true });
});

function resolver(now?: () => number): Resolver {
  server.asked.length = 0;
  return createResolver({
    hostsFile: join(directory, 'hosts'),
    resolvConfFile: join(directory, 'resolv.conf'),
    servers: server.servers,
    ...(now === undefined ? {} : { now }),
  });
}

function resolve(name: string): Promise<string[]> {
  return resolver().resolve(name);
}

test('returns an IP literal itself, without a query', async () => {
  assert.deepEqual(await resolve('192.0.2.1'), ['192.0.2.1']);
  assert.deepEqual(await resolve('[2001:DB8::1]'), ['2001:db8::1']);
  assert.deepEqual(server.asked, []);
});

test('localhost and every name below it are the loopback addresses, without DNS', async () => {
  for (const name of ['localhost', 'LOCALHOST.', 'app.localhost']) {
    assert.deepEqual(await resolve(name), ['127.0.0.1', '::1']);
  }
  assert.deepEqual(server.asked, []);
});

test('finds names in the hosts file before DNS', async () => {
  assert.deepEqual(await resolve('crm.internal'), ['127.0.0.9', '::9']);
  assert.deepEqual(await resolve('crm.'), ['127.0.0.9']);
  assert.deepEqual(server.asked, []);
});

test('queries DNS for both families', async () => {
  assert.deepEqual(await resolve('both.example'), ['192.0.2.7', '2001:db8::7']);
  assert.deepEqual(await resolve('six.example'), ['2001:db8::6']);
});

test('tries a short name with the search domains first, and a name with dots without them first', async () => {
  assert.deepEqual(await resolve('short'), ['192.0.2.9']);
  assert.equal(server.asked[0], 'short.corp.example');
  assert.deepEqual(await resolve('a.b'), ['192.0.2.10']);
  assert.deepEqual([...new Set(server.asked)], ['a.b', 'a.b.corp.example']);
  await assert.rejects(resolve('short.'), ResolveError);
});

test('distinguishes a name without addresses from a name server that fails', async () => {
  await assert.rejects(resolve('missing.example'), { message: 'The name missing.example has no address' });
  await assert.rejects(
    resolve('fails.example'),
    /fails\.example could not be looked up: the name server reported/,
  );
});

test('caches an address for its TTL, and a missing name for 30 s', async () => {
  let nowMs = 0;
  const { resolve } = resolver(() => nowMs);
  assert.deepEqual(await resolve('both.example'), ['192.0.2.7', '2001:db8::7']);
  nowMs += 59_999;
  await resolve('both.example');
  assert.equal(server.asked.length, 2, 'once for each family');
  nowMs += 1;
  await resolve('both.example');
  assert.equal(server.asked.length, 4);

  server.asked.length = 0;
  await assert.rejects(resolve('missing.'), ResolveError);
  nowMs += 29_999;
  await assert.rejects(resolve('missing.'), ResolveError);
  assert.equal(server.asked.length, 2);
  nowMs += 1;
  await assert.rejects(resolve('missing.'), ResolveError);
  assert.equal(server.asked.length, 4);
});

test('caches an address for at most 5 minutes, and not at all if the TTL is 0', async (t) => {
  for (const [ttlS, freshMs] of [
    [86_400, 300_000],
    [0, 0],
  ] as const) {
    const own = await startNameServer(() => ['192.0.2.7'], { ttlS });
    t.after(() => own.stop());
    let nowMs = 0;
    const { resolve } = createResolver({ servers: own.servers, hostsFile: '/dev/null', now: () => nowMs });
    await resolve('one.example.');
    nowMs += Math.max(0, freshMs - 1);
    await resolve('one.example.');
    assert.equal(own.asked.length, ttlS === 0 ? 4 : 2);
    nowMs += 1;
    await resolve('one.example.');
    assert.equal(own.asked.length, ttlS === 0 ? 6 : 4);
  }
});

test('gives up on a name server that does not respond', async () => {
  const startedAt = performance.now();
  await assert.rejects(
    resolve('silent.example'),
    // Either c-ares gives up first, after its tries, or the budget is used up.
    /silent\.example could not be looked up(: no name server responded in time| within 2 s)/,
  );
  assert.ok(performance.now() - startedAt < 15_000);
});

test('parses hosts and resolv.conf according to their manual pages', () => {
  assert.deepEqual(
    [...parseHosts('# x\n\n10.0.0.1\ta b\nnonsense c\n10.0.0.2 a. # d\n')],
    [
      ['a', ['10.0.0.1', '10.0.0.2']],
      ['b', ['10.0.0.1']],
    ],
  );
  assert.deepEqual(
    parseResolvConf('domain x\nsearch a.b. c\noptions timeout:1 ndots:2\nnameserver 10.0.0.1\n'),
    {
      domains: ['a.b', 'c'],
      ndots: 2,
    },
  );
  assert.deepEqual(candidates('a.b', { domains: ['c'], ndots: 2 }), ['a.b.c', 'a.b']);
});
