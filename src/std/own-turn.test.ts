/** Several callers never share a turn of the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownTurn } from './own-turn.ts';

test('each caller has a turn of its own, in their order', async () => {
  let turn = 0;
  let over = false;
  const count = () => {
    turn += 1;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const turns = await Promise.all(
    Array.from({ length: 20 }, async () => {
      await ownTurn();
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
