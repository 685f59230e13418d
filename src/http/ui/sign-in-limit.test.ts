/** How often an address may try to sign in. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SignInLimit } from './sign-in-limit.ts';

function triesLeft(limit: SignInLimit, address: string, nowMs: number): number {
  for (let tries = 0; ; tries++) if (limit.take(address, nowMs) > 0) return tries;
}

test('an address has ten tries a minute, and others have their own', () => {
  const limit = new SignInLimit();
  assert.equal(triesLeft(limit, '10.0.0.1', 0), 10);
  assert.equal(limit.take('10.0.0.1', 59_000), 1_000);
  assert.equal(triesLeft(limit, '10.0.0.2', 0), 10);
  assert.equal(triesLeft(limit, '10.0.0.1', 60_000), 10);
});

test('a try that succeeded is given back', () => {
  const limit = new SignInLimit();
  for (let n = 0; n < 100; n++) {
    assert.equal(limit.take('10.0.0.1', 0), 0);
    limit.give('10.0.0.1');
  }
  assert.equal(triesLeft(limit, '10.0.0.1', 0), 10);
});

test('the addresses of one /64 are one', () => {
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

test('no more than ten thousand addresses are remembered, the first forgotten first', () => {
  const limit = new SignInLimit();
  assert.equal(triesLeft(limit, 'first', 0), 10);
  for (let n = 0; n < 9_999; n++) limit.take(`${n}`, 0);
  assert.equal(triesLeft(limit, 'first', 0), 0);
  limit.take('one more', 0);
  assert.equal(triesLeft(limit, 'first', 0), 10);
});
