/** Callers never share a turn of the event loop, and teams take turns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownTurn } from './fair-share.ts';

test('each caller has its own turn, in order', async () => {
  let turn = 0;
  let over = false;
  const count = () => {
    turn += 1;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const turns = await Promise.all(
    Array.from({ length: 20 }, async () => {
      await ownTurn('team');
      return turn;
    }),
  );
  over = true;
  assert.equal(new Set(turns).size, 20);
  assert.deepEqual(
    turns.toSorted((a, b) => a - b),
    turns,
  );
});

test('a step of one team waits for one step of another team, however many wait', async () => {
  const order: string[] = [];
  const step = async (team: string) => {
    await ownTurn(team);
    order.push(team);
  };
  const flood = Array.from({ length: 50 }, () => step('flood'));
  await flood[0];
  const small = async () => {
    for (let steps = 0; steps < 3; steps++) await step('small');
  };
  await Promise.all([...flood, small()]);
  assert.deepEqual(
    order.flatMap((team, at) => (team === 'small' ? [at] : [])),
    [2, 4, 6],
  );
});
