/** Which proxies are believed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTrustedProxies } from './host.ts';

/** Whether each address is believed. */
function believed(text: string, addresses: string[]): boolean[] {
  const proxies = parseTrustedProxies(text);
  assert.ok(proxies);
  return addresses.map((address) => proxies.trusts(address, 0));
}

test('addresses and networks of both families are told apart, however a socket writes them', () => {
  const addresses = ['10.1.2.3', '::ffff:10.1.2.3', '11.0.0.1', 'fd00::7', '2001:db8::1', 'nonsense', ''];
  assert.deepEqual(believed('10.0.0.0/8, fd00::/8', addresses), [
    true,
    true,
    false,
    true,
    false,
    false,
    false,
  ]);
  assert.deepEqual(believed('10.1.2.3', addresses), [true, true, false, false, false, false, false]);
});

test('an address that has another one inside is not that one', () => {
  assert.deepEqual(believed('10.0.0.0/8', ['2002:0a01:0203::1', '64:ff9b::10.1.2.3']), [false, false]);
});

test('loopback and private are words for their networks', () => {
  const addresses = ['127.0.0.1', '::1', '192.168.1.1', '172.16.0.1', '100.64.0.1', '8.8.8.8'];
  assert.deepEqual(believed('loopback', addresses).slice(0, 4), [true, true, false, false]);
  assert.deepEqual(believed('loopback,private', addresses).slice(0, 4), [true, true, true, true]);
  assert.equal(believed('loopback,private', addresses).at(-1), false);
});

test('true is whoever is connected and nobody behind, false is nobody, and what is neither is refused', () => {
  assert.deepEqual(believed('true', ['8.8.8.8']), [true]);
  const everybody = parseTrustedProxies('true');
  assert.ok(everybody);
  assert.equal(everybody.trusts('8.8.8.8', 1), false);
  assert.equal(parseTrustedProxies('false'), false);
  for (const text of ['', 'yes', '10.0.0.0/33', '10.0.0.1,', 'example.com', '::1/200']) {
    assert.equal(parseTrustedProxies(text), undefined, text);
  }
});
