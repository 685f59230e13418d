/** The address of the client. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { clientAddress } from './caller.ts';

const socket = { remoteAddress: '10.0.0.1' } as Socket;

test('drops the port that a proxy appends', () => {
  for (const [ip, address] of [
    ['203.0.113.5', '203.0.113.5'],
    ['203.0.113.5:51234', '203.0.113.5'],
    ['[2001:db8::1]:51234', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['::ffff:203.0.113.5', '203.0.113.5'],
  ] as const) {
    assert.equal(clientAddress({ ip, socket }), address);
  }
});

test('uses the peer’s address if the proxy reports none', () => {
  for (const ip of [
    undefined,
    '',
    'unknown',
    'ada@example.com',
    '1.2.3',
    '1.2.3.4:',
    '<b>',
    'a'.repeat(10_000),
  ]) {
    assert.equal(clientAddress({ ip, socket }), '10.0.0.1');
  }
});

test('a client that has disconnected has no address', () => {
  assert.equal(
    clientAddress({ ip: undefined, socket: { remoteAddress: undefined } as unknown as Socket }),
    '',
  );
});
