/** Starting requests in turns of the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestTurns } from './requests.ts';

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a request of one team starts immediately, however many requests of another team wait', async () => {
  const turns = new RequestTurns();
  const started: string[] = [];
  const take = async (team: string) => {
    await turns.take(team);
    started.push(team);
  };
  const flood = Array.from({ length: 500 }, () => take('flood'));
  await nextTurn();
  await nextTurn();
  const before = started.length;
  assert.ok(before < 40, `${before} requests of one team started in two turns`);
  await take('small');
  assert.equal(started.length, before + 1);
  await Promise.all(flood);
  assert.equal(started.length, 501);
});
