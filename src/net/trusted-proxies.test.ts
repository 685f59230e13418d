/** Which proxies are trusted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTrustedProxies } from './host.ts';

/** Whether each address is trusted. */
function trusted(text: string, addresses: string[]): boolean[] {
  const proxies = parseTrustedProxies(text);
  assert.ok(proxies);
  return addresses.map((address) => proxies.trusts(address, 0));
}

test('distinguishes addresses and networks of both families, in every form in which sockets report them', () => {
  const addresses = ['10.1.2.3', '::ffff:10.1.2.3', '11.0.0.1', 'fd00::7', '2001:db8::1', 'nonsense', ''];
  assert.deepEqual(trusted('10.0.0.0/8, fd00::/8', addresses), [
    true,
    true,
    false,
    true,
    false,
    false,
    false,
  ]);
  assert.deepEqual(trusted('10.1.2.3', addresses), [true, true, false, false, false, false, false]);
});

test('an address is not the IPv4 address that it contains', () => {
  assert.deepEqual(trusted('10.0.0.0/8', ['2002:0a01:0203::1', '64:ff9b::10.1.2.3']), [false, false]);
});

test('`loopback` and `private` mean their networks', () => {
  const addresses = ['127.0.0.1', '::1', '192.168.1.1', '172.16.0.1', '100.64.0.1', '8.8.8.8'];
  assert.deepEqual(trusted('loopback', addresses).slice(0, 4), [true, true, false, false]);
  assert.deepEqual(trusted('loopback,private', addresses).slice(0, 4), [true, true, true, true]);
  assert.equal(trusted('loopback,private', addresses).at(-1), false);
});

test('`true` trusts the connected peer but no further hop, `false` trusts nobody, and other words are invalid', () => {
  assert.deepEqual(trusted('true', ['8.8.8.8']), [true]);
  const everybody = parseTrustedProxies('true');
  assert.ok(everybody);
  assert.equal(everybody.trusts('8.8.8.8', 1), false);
  assert.equal(parseTrustedProxies('false'), false);
  for (const text of ['', 'yes', '10.0.0.0/33', '10.0.0.1,', 'example.com', '::1/200']) {
    assert.equal(parseTrustedProxies(text), undefined, text);
  }
});
