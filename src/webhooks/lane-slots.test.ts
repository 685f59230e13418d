/** How requests in flight are shared. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Flight, Slots } from './lane-slots.ts';

/** Starts as many as are let in. */
function fill(slots: Slots<null>, teamId: string, slow: boolean, most = 5_000): Flight<null>[] {
  const flights: Flight<null>[] = [];
  while (flights.length < most && slots.admits({ teamId, slow })) {
    flights.push(slots.begin({ holder: null, teamId, slow, startedAt: 0 }));
  }
  return flights;
}

test('slow lanes get at most half of the slots, and quick ones still find room', () => {
  const slots = new Slots<null>();
  const held = ['a', 'b', 'c', 'd', 'e'].map((team) => fill(slots, team, true).length);
  assert.equal(
    held.reduce((sum, count) => sum + count, 0),
    256,
  );
  assert.ok(slots.admits({ teamId: 'a', slow: false }));
});

test('a team leaves a quarter free, and whoever comes then finds room', () => {
  const slots = new Slots<null>();
  assert.equal(fill(slots, 'greedy', false).length, 384);
  assert.equal(fill(slots, 'second', false).length, 96);
  assert.equal(fill(slots, 'third', false).length, 24, 'and so does the next');
  assert.ok(!slots.admits({ teamId: 'third', slow: false }));
});

test('requests that have been under way for a second no longer count against the quick ones', () => {
  const slots = new Slots<null>();
  const hanging = fill(slots, 'a', false);
  assert.ok(!slots.admits({ teamId: 'a', slow: false }));
  assert.equal(slots.age(999).length, 0);
  assert.equal(slots.age(1_000).length, hanging.length);
  assert.ok(slots.admits({ teamId: 'a', slow: false }));
  assert.ok(!slots.admits({ teamId: 'a', slow: true }), 'slow ones have their half already');
});

test('is empty when all requests have ended, also those that became slow', () => {
  const slots = new Slots<null>();
  const flights = [...fill(slots, 'a', false), ...fill(slots, 'b', true)];
  slots.age(1_000);
  for (const flight of flights) slots.end(flight);
  assert.equal(slots.size, 0);
  assert.equal(fill(slots, 'a', false).length, 384);
});

test('has at most 2,048 requests in flight, however many hang', () => {
  const slots = new Slots<null>();
  for (let team = 0; team < 100; team++) {
    fill(slots, `team_${team}`, false);
    slots.age(1_000);
  }
  assert.equal(slots.size, 2_048);
  assert.ok(slots.isFull);
});
