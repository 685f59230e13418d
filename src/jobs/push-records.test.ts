/** Push bodies that are designed to be slow to parse. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPushed } from './push-records.ts';

test('a header row with very many columns is parsed in linear time', { timeout: 60_000 }, async () => {
  const names = Array.from({ length: 170_000 }, (_, at) => at.toString(36));
  const csv = Buffer.from(`id,${names.map((name) => `${name}_`).join()}\n1${','.repeat(names.length)}\n`);
  const startedAt = performance.now();
  const batches: string[][] = [];
  for await (const batch of readPushed([csv] as never, { format: 'csv', encoding: 'identity' })) {
    batches.push(batch);
  }
  assert.deepEqual(batches, [['{"id":"1"}']]);
  assert.ok(performance.now() - startedAt < 20_000);
});
