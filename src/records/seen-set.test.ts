/** Seen numbers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SeenSet } from './seen-set.ts';

test('holds exactly what was added', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100_000)), fc.array(fc.nat(100_000)), (added, asked) => {
      const seen = new SeenSet();
      for (const number of added) seen.add(number);
      for (const number of [...added, ...asked]) assert.equal(seen.has(number), added.includes(number));
    }),
  );
});
