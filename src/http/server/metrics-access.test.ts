/** Which addresses and host names may read metrics without a key. */
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { parseNetworkList, parseTrustedProxies } from '../../net/host.ts';
import { hasAllowedAddress, isOwnHost } from './metrics-access.ts';

const allowed = parseNetworkList('loopback, 10.0.0.0/8');
const nobody = false as const;
const proxies = parseTrustedProxies('192.0.2.0/24') as never;
const everybody = parseTrustedProxies('true') as never;

test('an allowed address needs no key if it is the client’s own address', () => {
  const is = (expected: boolean, ip: string, headers: object, trustProxy: never | false) =>
    assert.equal(
      hasAllowedAddress({ ip, headers: headers as never }, { allowed, trustProxy }),
      expected,
      `${ip} ${JSON.stringify(headers)}`,
    );
  is(true, '127.0.0.1', {}, nobody);
  is(true, '::1', {}, nobody);
  is(true, '::ffff:10.1.2.3', {}, nobody);
  is(false, '203.0.113.5', {}, nobody);
  // An untrusted proxy forwards requests of other clients.
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
    is(false, '127.0.0.1', { [name]: '127.0.0.1' }, nobody);
  }
  is(true, '10.1.2.3', { 'x-forwarded-for': '10.1.2.3' }, proxies);
  is(false, '203.0.113.5', { 'x-forwarded-for': '203.0.113.5' }, proxies);
  // Anybody can send the other headers, even through a trusted proxy.
  is(false, '127.0.0.1', { forwarded: 'for=127.0.0.1' }, proxies);
  is(false, '10.1.2.3', { 'x-forwarded-for': '10.1.2.3' }, everybody);
});

test('without a list every client needs a key', () => {
  const request = { ip: '127.0.0.1', headers: {} as never };
  assert.equal(hasAllowedAddress(request, { allowed: undefined, trustProxy: false }), false);
});

const PUBLIC = 'https://hooks.example.com/';

test('accepts names that cannot be registered by others', () => {
  for (const host of [
    undefined,
    '127.0.0.1',
    '127.0.0.1:8080',
    '[::1]:8080',
    '192.168.1.7:8080',
    'localhost:8080',
    'LOCALHOST.',
    'flowhook:8080',
    'node.local',
    'flowhook.team.svc.cluster.local:8080',
    hostname(),
    'hooks.example.com',
    'Hooks.Example.com:443',
  ])
    assert.ok(isOwnHost(host, PUBLIC), `${host}`);
});

test('refuses names that others can register', () => {
  for (const host of [
    'evil.example',
    'evil.example:8080',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'hooks.example.com.evil.example',
    'notlocal.example',
    'example.com',
  ]) {
    assert.ok(!isOwnHost(host, PUBLIC), host);
    assert.ok(!isOwnHost(host, ''), host);
  }
});
