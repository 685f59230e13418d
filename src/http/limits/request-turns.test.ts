/** Turns at the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestTurns } from './requests.ts';

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('one request of a team begins at once, however many of another team wait', async () => {
  const turns = new RequestTurns();
  const begun: string[] = [];
  const take = (team: string) => turns.take(team).then(() => void begun.push(team));
  const flood = Array.from({ length: 500 }, () => take('flood'));
  await nextTurn();
  await nextTurn();
  const before = begun.length;
  assert.ok(before < 40, `${before} requests of one team began in two turns`);
  await take('small');
  assert.equal(begun.length, before + 1);
  await Promise.all(flood);
  assert.equal(begun.length, 501);
});
