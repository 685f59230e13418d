/** Times as they are written for people. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytes, duration, many } from './quantity.ts';
import { absolute, lasting, relative } from './times.ts';

const NOW = Date.parse('2026-11-21T03:04:05.600Z');

test('times are told as one says them', () => {
  const told = (ms: number) => relative(new Date(NOW + ms).toISOString(), NOW);
  assert.deepEqual([-200, 300, -12_900, 181_000, -7_300_000, -200_000_000].map(told), [
    'just now',
    'in a moment',
    '12 s ago',
    'in 3 min',
    '2 h ago',
    '2 d ago',
  ]);
  assert.equal(absolute('2026-11-21T03:04:05.600Z', 'utc'), '2026-11-21 03:04:05 UTC');
});

test('what goes on is told by how long it has lasted', () => {
  const told = (ms: number) => lasting(new Date(NOW + ms).toISOString(), NOW);
  assert.deepEqual([500, -200, -5_000, -90_000_000].map(told), [
    'for a moment',
    'for a moment',
    'for 5 s',
    'for 1 d',
  ]);
});

test('numbers have their units', () => {
  assert.deepEqual([950, 999, 1_000, 12_345, 1_500_000, 123_456_789].map(bytes), [
    '950 B',
    '999 B',
    '1.0 kB',
    '12.3 kB',
    '1.5 MB',
    '123 MB',
  ]);
  assert.deepEqual(
    [many(1, 'run'), many(1_200, 'run'), many(2, 'delivery', 'deliveries')],
    ['1 run', '1,200 runs', '2 deliveries'],
  );
});

test('lengths of time have two units at most', () => {
  assert.deepEqual([12, 2_440, 45_600, 185_000, 7_800_000, 273_600_000].map(duration), [
    '12 ms',
    '2.4 s',
    '46 s',
    '3 min 5 s',
    '2 h 10 min',
    '3 d 4 h',
  ]);
});
