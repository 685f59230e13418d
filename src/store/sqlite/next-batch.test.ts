/** Which waiting calls make up the next batch. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextBatch } from './writer.ts';

const of = (teamId: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ name: `${teamId}${n}`, input: { teamId } }));
const names = (calls: { name: string }[]) => calls.map(({ name }) => name).join(' ');

test('takes all waiting calls unchanged if they fit', () => {
  const waiting = [...of('a', 3), ...of('b', 1)];
  const { batch, left } = nextBatch(waiting, 4);
  assert.equal(batch, waiting);
  assert.deepEqual(left, []);
});

test('takes turns between teams, and keeps the order of the calls of each', () => {
  const held = { name: 'c0', input: { held: { teamId: 'c' } } };
  const first = nextBatch([...of('a', 9), ...of('b', 2), held], 6);
  assert.equal(names(first.batch), 'a0 a1 a2 b0 b1 c0');
  assert.equal(names(first.left), 'a3 a4 a5 a6 a7 a8');
  const second = nextBatch([...first.left, ...of('b', 1)], 4);
  assert.equal(names(second.batch), 'a3 a4 a5 b0');
  assert.equal(names(second.left), 'a6 a7 a8');
});

test('takes the calls without a team first, the oldest when there are too many', () => {
  const claims = Array.from({ length: 3 }, (_, n) => ({ name: `claim${n}`, input: { limit: 1 } }));
  const none = [...claims, { name: 'claim3', input: undefined }];
  assert.equal(names(nextBatch([...of('a', 9), ...none], 5).batch), 'a0 claim0 claim1 claim2 claim3');
  assert.equal(names(nextBatch([...of('a', 9), ...none], 3).batch), 'claim0 claim1 claim2');
});

test('takes the teams that have waited longest when there are more teams than places', () => {
  const waiting = ['a', 'b', 'c', 'd'].flatMap((team) => of(team, 2));
  const { batch, left } = nextBatch(waiting, 3);
  assert.equal(names(batch), 'a0 b0 c0');
  assert.equal(names(nextBatch(left, 3).batch), 'a1 b1 c1');
});
