/** Requests to forbidden addresses in every spelling, and to names whose address changes: none of them arrives. */
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { type Dispatcher, request } from 'undici';
import { ELSEWHERE, THIS_MACHINE, tricks } from '../../test/support/net/address-spellings.ts';
import { type Addresses, startNameServer } from '../../test/support/net/name-server.ts';
import { type AddressPolicy, parseAllowNetworks } from './address-policy.ts';
import { BlockedAddressError, createGuardedDispatcher } from './dispatcher.ts';
import { createResolver, type Resolver } from './resolver.ts';

/** Servers at every address of this machine, which record the requests that the guard allows. */
const servers: Server[] = [];
const arrived: { host: string; at: string }[] = [];
let connections = 0;
let port: number;

before(async () => {
  port = await listen('0.0.0.0', 0);
  // The same port on IPv6, if the machine has IPv6.
  await listen('::', port).catch(() => undefined);
});

after(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

async function listen(host: string, wanted: number): Promise<number> {
  const server = createServer((request, response) => {
    arrived.push({ host: request.headers.host ?? '', at: request.socket.localAddress ?? '' });
    response.end();
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.listen({ host, port: wanted, ipv6Only: host === '::' });
  await once(server, 'listening');
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

function forget(): void {
  arrived.length = 0;
  connections = 0;
}

function guarded(setting: string, resolver: Resolver): Dispatcher {
  return createGuardedDispatcher({ policy: parseAllowNetworks(setting), resolver, connectMs: 2_000 });
}

async function get(dispatcher: Dispatcher, origin: string): Promise<number> {
  const answer = await request(`${origin}/`, { dispatcher });
  await answer.body.dump();
  await nextTurn();
  return answer.statusCode;
}

test('refuses more than 60 spellings of forbidden addresses, and nothing arrives', async (t) => {
  const dispatcher = guarded('none', createResolver());
  t.after(() => dispatcher.destroy());
  forget();
  const urls = [...[...THIS_MACHINE, ...ELSEWHERE].map((host) => `http://${host}:${port}/`), ...tricks(port)];
  let refused = 0;
  for (const text of urls) {
    const url = URL.parse(text);
    // Webhooks accept only valid URLs.
    if (url === null) continue;
    await assert.rejects(get(dispatcher, url.origin), BlockedAddressError, text);
    refused += 1;
  }
  assert.equal(connections, 0);
  assert.ok(refused > 120, `${refused} spellings were tried`);
});

test('refuses unparsed addresses, with zones and in capitals', async (t) => {
  const dispatcher = guarded('none', createResolver());
  t.after(() => dispatcher.destroy());
  forget();
  for (const host of ['127.0.0.1', '[::1]', '[::FFFF:127.0.0.1]', 'LOCALHOST', 'localhost.', '[0:0::1]']) {
    await assert.rejects(get(dispatcher, `http://${host}:${port}`), BlockedAddressError, host);
  }
  const { verdict } = parseAllowNetworks('none');
  for (const address of [
    'fe80::1%eth0',
    'fe80::1%25eth0',
    '::1%lo',
    'FE80::1',
    '127.0.0.1%1',
    '0x7f.1',
    '',
  ]) {
    assert.equal(verdict(address).allowed, false, address);
  }
  assert.equal(connections, 0);
});

test('allows only the addresses in the setting', async (t) => {
  for (const [setting, allowed, refused] of [
    [
      'loopback',
      ['127.0.0.1', '2130706433', 'localhost', '[::ffff:127.0.0.1]', '127.9.9.9'],
      ['0', '10.0.0.1'],
    ],
    ['127.0.0.1', ['127.0.0.1', '0x7f.1'], ['127.0.0.2', '[::1]', 'localhost']],
    ['127.0.0.0/30', ['127.0.0.1', '127.0.0.2'], ['127.0.0.5', '169.254.169.254']],
    ['private', [], ['127.0.0.1', '[::1]', '169.254.169.254', '[fd00:ec2::254]', '0.0.0.0']],
    ['0.0.0.0/0', ['127.0.0.1'], ['169.254.169.254', '100.100.100.200', '[::1]']],
  ] as const) {
    const dispatcher = guarded(setting, createResolver());
    t.after(() => dispatcher.destroy());
    for (const host of allowed) {
      forget();
      // Some machines do not support mapped addresses, so only a refusal by the guard fails the test.
      const status = await get(dispatcher, new URL(`http://${host}:${port}`).origin).catch((error) => {
        assert.ok(!(error instanceof BlockedAddressError), `${setting}: ${host}: ${error.message}`);
      });
      if (status !== undefined) assert.equal(arrived.length, 1, `${setting}: ${host}`);
    }
    forget();
    for (const host of refused) {
      const origin = new URL(`http://${host}:${port}`).origin;
      await assert.rejects(get(dispatcher, origin), BlockedAddressError, `${setting}: ${host}`);
    }
    assert.equal(connections, 0);
  }
});

/** A resolver with a real name server on loopback, whose responses are not cached by default. */
async function withNames(
  t: { after(work: () => Promise<void>): void },
  addressesOf: (name: string, query: number) => Addresses,
  ttlS = 0,
) {
  const queries = new Map<string, number>();
  const server = await startNameServer(
    (name) => {
      const query = (queries.get(name) ?? 0) + 1;
      queries.set(name, query);
      return addressesOf(name, query);
    },
    { ttlS },
  );
  t.after(() => server.stop());
  const files = { hostsFile: '/dev/null', resolvConfFile: '/dev/null' };
  return { asked: server.asked, resolver: createResolver({ ...files, servers: server.servers }) };
}

test('rebinding: a name that is public when checked and private when used', async (t) => {
  // One lookup sends two queries, for IPv4 and for IPv6.
  const { resolver } = await withNames(t, (_name, query) => [query <= 2 ? '93.184.216.34' : '127.0.0.1']);
  const dispatcher = guarded('none', resolver);
  t.after(() => dispatcher.destroy());
  forget();
  assert.deepEqual(await resolver.resolve('rebind.example'), ['93.184.216.34']);
  await assert.rejects(get(dispatcher, `http://rebind.example:${port}`), {
    name: 'BlockedAddressError',
    message: /^rebind\.example resolves to 127\.0\.0\.1, and 127\.0\.0\.1 is a loopback address/,
  });
  assert.equal(connections, 0);
});

test('rebinding: a name with several addresses, one of them private, in any position', async (t) => {
  const answers: Record<string, string[]> = {
    'first.example': ['10.0.0.5', '127.0.0.1'],
    'last.example': ['127.0.0.1', '10.0.0.5'],
    'six.example': ['127.0.0.1', 'fd00:ec2::254'],
    'mapped.example': ['127.0.0.1', '::ffff:a9fe:a9fe'],
  };
  const { resolver } = await withNames(t, (name) => answers[name]);
  const dispatcher = guarded('127.0.0.1', resolver);
  t.after(() => dispatcher.destroy());
  forget();
  for (const name of Object.keys(answers)) {
    await assert.rejects(get(dispatcher, `http://${name}:${port}`), BlockedAddressError, name);
  }
  assert.equal(connections, 0);
});

test('rebinding: a name whose address changes while its connection is reused', async (t) => {
  let address = '127.0.0.1';
  const { resolver, asked } = await withNames(t, () => [address]);
  const dispatcher = guarded('127.0.0.1', resolver);
  t.after(() => dispatcher.destroy());
  forget();
  const origin = `http://kept.example:${port}`;
  assert.equal(await get(dispatcher, origin), 200);
  address = '127.0.0.2';
  assert.equal(await get(dispatcher, origin), 200, 'the open connection still uses the checked address');
  assert.equal(connections, 1);
  assert.deepEqual(asked, ['kept.example', 'kept.example'], 'one lookup, for both families');
  assert.deepEqual([...new Set(arrived.map(({ at }) => at.replace('::ffff:', '')))], ['127.0.0.1']);

  // Two concurrent requests need a second connection, which is looked up and checked again.
  const both = await Promise.allSettled([get(dispatcher, origin), get(dispatcher, origin)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const failed = both.find((one) => one.status === 'rejected');
  assert.match(String(failed?.reason), /kept\.example resolves to 127\.0\.0\.2/);
  assert.equal(connections, 1);
});

test('each connection uses the checked address, with one lookup, and none by Node', async (t) => {
  const { resolver } = await withNames(t, () => ['127.0.0.1'], 60);
  const lookups: string[] = [];
  const counting: Resolver = {
    resolve(hostname) {
      lookups.push(hostname);
      return resolver.resolve(hostname);
    },
  };
  const byNode = t.mock.method(dns, 'lookup');
  const dispatcher = guarded('127.0.0.1', counting);
  t.after(() => dispatcher.destroy());
  forget();
  const hosts = Array.from({ length: 5 }, (_, index) => `pin${index}.example`);
  for (const host of hosts) assert.equal(await get(dispatcher, `http://${host}:${port}`), 200);
  assert.deepEqual(lookups, hosts);
  assert.equal(byNode.mock.callCount(), 0);
  assert.equal(connections, hosts.length);
  assert.deepEqual(
    arrived.map(({ host, at }) => [host, at.replace('::ffff:', '')]),
    hosts.map((host) => [`${host}:${port}`, '127.0.0.1']),
  );
});

test('checks the remote address of a socket before anything is written to it', async (t) => {
  const real = parseAllowNetworks('127.0.0.1');
  const checked: string[] = [];
  // The second check of a connection is for its remote address. Here it differs from the lookup's address.
  const policy: AddressPolicy = {
    ...real,
    verdict(address) {
      checked.push(address);
      return real.verdict(checked.length % 2 === 0 ? '10.0.0.5' : address);
    },
  };
  const resolver: Resolver = { resolve: async () => ['127.0.0.1'] };
  const dispatcher = createGuardedDispatcher({ policy, resolver, connectMs: 2_000 });
  t.after(() => dispatcher.destroy());
  forget();
  await assert.rejects(get(dispatcher, `http://end.example:${port}`), {
    name: 'BlockedAddressError',
    message: /^The connection was closed: 10\.0\.0\.5 is a private address/,
  });
  assert.deepEqual(checked, ['127.0.0.1', '127.0.0.1']);
  assert.equal(arrived.length, 0);
});

/** Undici releases a connection one turn after its response has ended. */
function nextTurn(): Promise<void> {
  return new Promise((go) => setImmediate(go));
}
