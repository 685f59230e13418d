/** Cooldowns, as a state machine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterCooldown, type Change, hear, type Quiet } from './quiet.ts';

const record = (price: number) => `{"id":"a","price":${price}}`;
const change = (before: number | null, after: number | null): Change => ({
  id: 'a',
  before: before === null ? null : record(before),
  after: after === null ? null : record(after),
});
const quiet = (until: number, sent: number | null, newest = sent): Quiet => ({
  id: 'a',
  until,
  sent: sent === null ? null : record(sent),
  newest: newest === null ? null : record(newest),
});
const always = () => true;
const never = () => false;
const rule = { at: 100, cooldownMs: 60, matches: always };

test('a record that matches is sent, and is quiet after that', () => {
  assert.deepEqual(hear(undefined, change(1, 2), rule), { end: 'sent', quiet: quiet(160, 2) });
  assert.deepEqual(hear(undefined, change(2, null), rule), { end: 'sent', quiet: quiet(160, null) });
});

test('a record that does not match stays audible', () => {
  const unmatched = { end: 'unmatched', quiet: undefined };
  assert.deepEqual(hear(undefined, change(1, 2), { ...rule, matches: never }), unmatched);
});

test('while a record is quiet, its newest state is kept, whether it matches or not', () => {
  const notAsked = { ...rule, matches: () => assert.fail('the filter was evaluated') };
  assert.deepEqual(hear(quiet(101, 2), change(2, 3), notAsked), { end: 'held', quiet: quiet(101, 2, 3) });
  assert.deepEqual(hear(quiet(101, 2, 3), change(3, null), notAsked), {
    end: 'held',
    quiet: quiet(101, 2, null),
  });
});

test('an event at the end of a cooldown is not held', () => {
  assert.equal(hear(quiet(100, 2), change(2, 3), rule).end, 'sent');
});

test('without a cooldown every match is sent, except while a cooldown of an earlier rule runs', () => {
  const every = { ...rule, cooldownMs: null };
  assert.deepEqual(hear(undefined, change(1, 2), every), { end: 'sent', quiet: undefined });
  assert.deepEqual(hear(quiet(500, 1), change(1, 2), every), { end: 'held', quiet: quiet(500, 1, 2) });
});

test('after a cooldown, the newest state is sent if it differs and matches', () => {
  const over = { now: 170, cooldownMs: 60, matches: always };
  assert.deepEqual(afterCooldown(quiet(160, 2, 5), over), { change: change(2, 5), quiet: quiet(220, 5) });
  assert.deepEqual(afterCooldown(quiet(160, 2, null), over), {
    change: change(2, null),
    quiet: quiet(220, null),
  });
  assert.deepEqual(afterCooldown(quiet(160, null, 5), over), {
    change: change(null, 5),
    quiet: quiet(220, 5),
  });
});

test('after a cooldown, nothing is sent if the record is as it was, or does not match', () => {
  const nothing = { change: undefined, quiet: undefined };
  const over = { now: 170, cooldownMs: 60, matches: always };
  assert.deepEqual(afterCooldown(quiet(160, 2), over), nothing);
  assert.deepEqual(afterCooldown({ ...quiet(160, 2), newest: '{"price":2,"id":"a"}' }, over), nothing);
  assert.deepEqual(afterCooldown(quiet(160, null), over), nothing);
  assert.deepEqual(afterCooldown(quiet(160, 2, 5), { ...over, matches: never }), nothing);
});

test('a cooldown that ended long ago, or that was removed, does not begin again', () => {
  assert.equal(
    afterCooldown(quiet(160, 2, 5), { now: 220, cooldownMs: 60, matches: always }).quiet,
    undefined,
  );
  assert.equal(
    afterCooldown(quiet(160, 2, 5), { now: 161, cooldownMs: null, matches: always }).quiet,
    undefined,
  );
});
