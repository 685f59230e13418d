/** Which class of deliveries is next. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextClass } from './lane.ts';

test('live deliveries precede retries, which precede replays', () => {
  assert.equal(nextClass(0, { live: 1, retry: 1, replay: 1 }), 'live');
  assert.equal(nextClass(0, { live: 0, retry: 1, replay: 1 }), 'retry');
  assert.equal(nextClass(0, { live: 0, retry: 0, replay: 1 }), 'replay');
  assert.equal(nextClass(0, { live: 0, retry: 0, replay: 0 }), undefined);
});

test('every eighth turn prefers retries and replays alternately, and no turn is wasted', () => {
  const served = { live: 0, retry: 0, replay: 0 };
  for (let turn = 0; turn < 160; turn++) {
    served[nextClass(turn, { live: 9, retry: 9, replay: 9 }) ?? 'live'] += 1;
  }
  assert.deepEqual(served, { live: 140, retry: 10, replay: 10 });
  for (let turn = 0; turn < 16; turn++) {
    assert.equal(nextClass(turn, { live: 9, retry: 0, replay: 0 }), 'live');
    assert.equal(nextClass(turn, { live: 0, retry: 0, replay: 9 }), 'replay');
  }
});
