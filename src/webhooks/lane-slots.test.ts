/** How lanes share requests in flight. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Flight, Slots } from './lane-slots.ts';

/** Starts as many requests as are admitted. */
function fill(slots: Slots<null>, teamId: string, slow: boolean, most = 5_000): Flight<null>[] {
  const flights: Flight<null>[] = [];
  while (flights.length < most && slots.admits({ teamId, slow })) {
    flights.push(slots.begin({ holder: null, teamId, slow, startedAt: 0 }));
  }
  return flights;
}

test('slow lanes get at most half of the slots, and fast lanes still get some', () => {
  const slots = new Slots<null>();
  const held = ['a', 'b', 'c', 'd', 'e'].map((team) => fill(slots, team, true).length);
  assert.equal(
    held.reduce((sum, count) => sum + count, 0),
    256,
  );
  assert.ok(slots.admits({ teamId: 'a', slow: false }));
});

test('one team leaves a quarter of the slots free for other teams', () => {
  const slots = new Slots<null>();
  assert.equal(fill(slots, 'greedy', false).length, 384);
  assert.equal(fill(slots, 'second', false).length, 96);
  assert.equal(fill(slots, 'third', false).length, 24, 'as does the next team');
  assert.ok(!slots.admits({ teamId: 'third', slow: false }));
});

test('requests that have been running for a second no longer count as fast', () => {
  const slots = new Slots<null>();
  const hanging = fill(slots, 'a', false);
  assert.ok(!slots.admits({ teamId: 'a', slow: false }));
  assert.equal(slots.age(999).length, 0);
  assert.equal(slots.age(1_000).length, hanging.length);
  assert.ok(slots.admits({ teamId: 'a', slow: false }));
  assert.ok(!slots.admits({ teamId: 'a', slow: true }), 'slow requests already have their half');
});

test('is empty when all requests have ended, including those that became slow', () => {
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
