/** Which addresses read metrics without a key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseNetworkList, parseTrustedProxies } from '../../net/host.ts';
import { hasAllowedAddress } from './metrics-access.ts';

const allowed = parseNetworkList('loopback, 10.0.0.0/8');
const nobody = false as const;
const proxies = parseTrustedProxies('192.0.2.0/24') as never;
const everybody = parseTrustedProxies('true') as never;

test('an allowed address needs no key, as long as it is the client’s own', () => {
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
  // A proxy that nobody has named says that somebody else asks.
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
    is(false, '127.0.0.1', { [name]: '127.0.0.1' }, nobody);
  }
  is(true, '10.1.2.3', { 'x-forwarded-for': '10.1.2.3' }, proxies);
  is(false, '203.0.113.5', { 'x-forwarded-for': '203.0.113.5' }, proxies);
  // What a proxy that is believed does not put into x-forwarded-for is anybody's word.
  is(false, '127.0.0.1', { forwarded: 'for=127.0.0.1' }, proxies);
  is(false, '10.1.2.3', { 'x-forwarded-for': '10.1.2.3' }, everybody);
});

test('without a list every client needs a key', () => {
  const request = { ip: '127.0.0.1', headers: {} as never };
  assert.equal(hasAllowedAddress(request, { allowed: undefined, trustProxy: false }), false);
});
