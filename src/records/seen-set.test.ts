/** Seen numbers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SeenSet } from './ingest.ts';

test('costs what was added, not what the largest number is', () => {
  // The seq of a workflow grows as long as it lives: one whose ids are new in every run gets this far.
  const seen = new SeenSet();
  for (const number of [7, 2 ** 40, 2 ** 52 + 1]) seen.add(number);
  for (const number of [7, 2 ** 40, 2 ** 52 + 1]) assert.ok(seen.has(number));
  for (const number of [8, 2 ** 40 - 1, 2 ** 52]) assert.ok(!seen.has(number));
});

test('holds exactly what was added', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100_000)), fc.array(fc.nat(100_000)), (added, asked) => {
      const seen = new SeenSet();
      for (const number of added) seen.add(number);
      for (const number of [...added, ...asked]) assert.equal(seen.has(number), added.includes(number));
    }),
  );
});
