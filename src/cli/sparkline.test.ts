/** Drawing numbers as bars. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sparkline } from './sparkline.ts';

test('draws one bar per number, and a space where there is none', () => {
  assert.equal(sparkline([0, 50, 99, 100, null, 12], { least: 0, most: 100 }), '▁▅██ ▁');
  assert.equal(sparkline([7, 7], { least: 7, most: 7 }), '██');
  assert.equal(sparkline([-5, 500], { least: 0, most: 100 }), '▁█');
  assert.equal(sparkline([], { least: 0, most: 1 }), '');
});
