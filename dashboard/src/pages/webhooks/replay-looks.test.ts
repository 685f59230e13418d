/** How often a replay is read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lookAgainMs } from './replay-looks.ts';

const replay = { state: 'done', outcome: { underWay: 1 } } as const;

test('a replay that takes long to read is read less often, and one that is over is not', () => {
  assert.equal(lookAgainMs({ replay, tookMs: 0, looks: 1 }), 1_000);
  assert.equal(lookAgainMs({ replay, tookMs: 0, looks: 60 }), 5_000);
  assert.equal(lookAgainMs({ replay: undefined, tookMs: 10, looks: 0 }), 1_010);
  // The service is busy with it for a sixth of the time at most.
  assert.equal(lookAgainMs({ replay, tookMs: 430, looks: 1 }), 430 + 5 * 430);
  assert.equal(lookAgainMs({ replay, tookMs: 2_000, looks: 60 }), 12_000);
  assert.equal(lookAgainMs({ replay: { ...replay, outcome: { underWay: 0 } }, tookMs: 0, looks: 1 }), false);
});
