/** The limit on failed sign-ins. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SignInLimit } from './session.ts';

function triesLeft(limit: SignInLimit, address: string, nowMs: number): number {
  for (let tries = 0; ; tries++) if (limit.take(address, nowMs) > 0) return tries;
}

test('each address has ten attempts per minute', () => {
  const limit = new SignInLimit();
  assert.equal(triesLeft(limit, '10.0.0.1', 0), 10);
  assert.equal(limit.take('10.0.0.1', 59_000), 1_000);
  assert.equal(triesLeft(limit, '10.0.0.2', 0), 10);
  assert.equal(triesLeft(limit, '10.0.0.1', 60_000), 10);
});

test('does not count attempts that succeeded', () => {
  const limit = new SignInLimit();
  for (let n = 0; n < 100; n++) {
    assert.equal(limit.take('10.0.0.1', 0), 0);
    limit.give('10.0.0.1');
  }
  assert.equal(triesLeft(limit, '10.0.0.1', 0), 10);
});

test('counts the addresses of one IPv6 /64 together', () => {
  const limit = new SignInLimit();
  assert.equal(triesLeft(limit, '2001:db8:1:2::1', 0), 10);
  assert.equal(triesLeft(limit, '2001:db8:1:2:3:4:5:6', 0), 0);
  assert.equal(triesLeft(limit, '2001:db8:1:3::1', 0), 10);
  assert.equal(triesLeft(limit, '2001:db8::1', 0), 10);
  assert.equal(triesLeft(limit, '2001:db8:0:0:7::', 0), 0);
  assert.equal(triesLeft(limit, '::1', 0), 10);
  assert.equal(triesLeft(limit, '::ffff:10.0.0.1', 0), 10);
  assert.equal(triesLeft(limit, '::ffff:10.0.0.2', 0), 10);
});

test('counts at most 10,000 addresses, and forgets the oldest', () => {
  const limit = new SignInLimit();
  assert.equal(triesLeft(limit, 'first', 0), 10);
  for (let n = 0; n < 9_999; n++) limit.take(`${n}`, 0);
  assert.equal(triesLeft(limit, 'first', 0), 0);
  limit.take('one more', 0);
  assert.equal(triesLeft(limit, 'first', 0), 10);
});
