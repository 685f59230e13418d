/** The adaptive limit on concurrent requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  admits,
  INITIAL_LIMIT,
  isShort,
  MAX_LIMIT,
  MIN_LIMIT,
  nextLimit,
  type Weight,
} from './load-limit.ts';

/** The limit after a number of equal samples. */
function after(looks: number, seen: { waitMs: number; most: number }, limit: number = INITIAL_LIMIT): number {
  let state = { limit, late: 0 };
  for (let look = 0; look < looks; look += 1) state = nextLimit({ ...state, ...seen });
  return state.limit;
}

test('falls while work waits too long, down to the minimum', () => {
  assert.equal(after(1, { waitMs: 500, most: 512 }), INITIAL_LIMIT);
  assert.equal(after(2, { waitMs: 500, most: 512 }), Math.floor(INITIAL_LIMIT * 0.8));
  assert.equal(after(100, { waitMs: 500, most: 512 }), MIN_LIMIT);
});

test('single late samples change nothing', () => {
  let state: { limit: number; late: number } = { limit: INITIAL_LIMIT, late: 0 };
  for (let look = 0; look < 100; look += 1)
    state = nextLimit({ ...state, waitMs: look % 2 ? 0 : 900, most: 1 });
  assert.equal(state.limit, INITIAL_LIMIT);
});

test('rises while nothing waits and the limit is used, and otherwise stays unchanged', () => {
  assert.equal(after(200, { waitMs: 0, most: 2_000 }, MIN_LIMIT), MAX_LIMIT);
  assert.equal(after(200, { waitMs: 0, most: 10 }, MIN_LIMIT), MIN_LIMIT);
  assert.equal(after(200, { waitMs: 75, most: 2_000 }, 300), 300);
});

test('rejects long requests first, then whole reads, then the rest, and never health checks', () => {
  const weights: Weight[] = ['light', 'brief', 'whole', 'long'];
  type Now = Partial<Omit<Parameters<typeof admits>[1], 'working'>> & { working?: number };
  const admitted = ({ working = 0, ...now }: Now) =>
    weights.filter((weight) =>
      admits(weight, {
        working: (most) => Math.min(most, working),
        held: working,
        limit: 100,
        isPressed: false,
        isShortOfMemory: false,
        ...now,
      }),
    );
  assert.deepEqual(admitted({}), weights);
  assert.deepEqual(admitted({ isPressed: true }), ['light', 'brief', 'whole']);
  assert.deepEqual(admitted({ working: 75 }), ['light', 'brief', 'long']);
  assert.deepEqual(admitted({ working: 100, isPressed: true }), ['light']);
  assert.deepEqual(admitted({ working: 100, held: 0 }), weights, 'from another team');
  assert.deepEqual(admitted({ working: 512, held: 0 }), weights);
  assert.deepEqual(admitted({ isShortOfMemory: true }), ['light', 'brief']);
  assert.deepEqual(admitted({ isShortOfMemory: true, working: MIN_LIMIT, limit: MAX_LIMIT }), ['light']);
});

test('memory is short above 90 %, until use falls below 80 %', () => {
  let isShortNow = false;
  const seen = [0.85, 0.91, 0.85, 0.79, 0.85].map((used) => {
    isShortNow = isShort(used, isShortNow);
    return isShortNow;
  });
  assert.deepEqual(seen, [false, true, true, false, false]);
});
