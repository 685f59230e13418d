/** The set of seen numbers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SeenSet } from './ingest.ts';

test('uses memory for the numbers added, not for the largest number', () => {
  // The `seq` of a workflow keeps growing. If every run has new ids, it gets this far.
  const seen = new SeenSet();
  for (const number of [7, 2 ** 40, 2 ** 52 + 1]) seen.add(number);
  for (const number of [7, 2 ** 40, 2 ** 52 + 1]) assert.ok(seen.has(number));
  for (const number of [8, 2 ** 40 - 1, 2 ** 52]) assert.ok(!seen.has(number));
});

test('contains exactly the numbers that were added', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100_000)), fc.array(fc.nat(100_000)), (added, asked) => {
      const seen = new SeenSet();
      for (const number of added) seen.add(number);
      for (const number of [...added, ...asked]) assert.equal(seen.has(number), added.includes(number));
      assert.equal(seen.size, new Set(added).size);
    }),
  );
});
