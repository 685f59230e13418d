/** Names to addresses, against a name server of our own on loopback. */
import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { candidates, parseHosts, parseResolvConf } from './name-files.ts';
import { createResolver, ResolveError } from './resolver.ts';

/** What the name server of these tests knows; `fails` are names that it reports a failure for. */
const ZONE: Record<string, string[]> = {
  'both.example': ['192.0.2.7', '2001:db8::7'],
  'six.example': ['2001:db8::6'],
  'short.corp.example': ['192.0.2.9'],
  'a.b.corp.example': ['192.0.2.10'],
};
const asked: string[] = [];
let server: Socket;
let directory: string;
let servers: string[];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-resolver-'));
  await writeFile(join(directory, 'hosts'), '127.0.0.9 crm.internal CRM # the CRM\n::9 crm.internal\n');
  await writeFile(join(directory, 'resolv.conf'), 'search corp.example other.example\n');
  server = createSocket('udp4');
  server.on('message', (query, from) => server.send(answer(query), from.port, from.address));
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  servers = [`127.0.0.1:${server.address().port}`];
});

after(async () => {
  server.close();
  await rm(directory, { recursive: true });
});

function resolve(name: string): Promise<string[]> {
  asked.length = 0;
  return createResolver({
    hostsFile: join(directory, 'hosts'),
    resolvConfFile: join(directory, 'resolv.conf'),
    servers,
  }).resolve(name);
}

test('answers an IP literal with itself and asks nobody', async () => {
  assert.deepEqual(await resolve('192.0.2.1'), ['192.0.2.1']);
  assert.deepEqual(await resolve('[2001:DB8::1]'), ['2001:db8::1']);
  assert.deepEqual(asked, []);
});

test('localhost and every name below it are the loopback addresses, whatever DNS says', async () => {
  for (const name of ['localhost', 'LOCALHOST.', 'app.localhost']) {
    assert.deepEqual(await resolve(name), ['127.0.0.1', '::1']);
  }
  assert.deepEqual(asked, []);
});

test('finds names of the hosts file before it asks DNS', async () => {
  assert.deepEqual(await resolve('crm.internal'), ['127.0.0.9', '::9']);
  assert.deepEqual(await resolve('crm.'), ['127.0.0.9']);
  assert.deepEqual(asked, []);
});

test('asks DNS for both families', async () => {
  assert.deepEqual(await resolve('both.example'), ['192.0.2.7', '2001:db8::7']);
  assert.deepEqual(await resolve('six.example'), ['2001:db8::6']);
});

test('applies the search domains, to a short name first and to one with dots last', async () => {
  assert.deepEqual(await resolve('short'), ['192.0.2.9']);
  assert.equal(asked[0], 'short.corp.example');
  assert.deepEqual(await resolve('a.b'), ['192.0.2.10']);
  assert.deepEqual([...new Set(asked)], ['a.b', 'a.b.corp.example']);
  await assert.rejects(resolve('short.'), ResolveError);
});

test('tells a name without addresses from a name server that fails', async () => {
  await assert.rejects(resolve('missing.example'), { message: 'The name missing.example has no address' });
  await assert.rejects(
    resolve('fails.example'),
    /fails\.example could not be looked up: the name server reported/,
  );
});

test('reads hosts and resolv.conf as their manual pages describe them', () => {
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

/** Answers a query for one name, as RFC 1035 lays it out. */
function answer(query: Buffer): Buffer {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const name = labels.join('.').toLowerCase();
  asked.push(name);
  const type = query.readUInt16BE(at + 1);
  const known = ZONE[name];
  const records = (known ?? []).filter((address) => isIPv4(address) === (type === 1)).map(record);
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | (name === 'fails.example' ? 2 : known === undefined ? 3 : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, query.subarray(12, at + 5), ...records]);
}

function record(address: string): Buffer {
  const data = isIPv4(address)
    ? Buffer.from(address.split('.').map(Number))
    : Buffer.from(`20010db8${'0'.repeat(22)}0${address.at(-1)}`, 'hex');
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(isIPv4(address) ? 1 : 28, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(60, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
