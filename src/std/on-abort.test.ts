/** Many actions for one signal. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { onAbort } from './stop-order.ts';

test('calls all actions once, with one listener, except those that were removed', () => {
  const stop = new AbortController();
  const called: number[] = [];
  const remove = [1, 2, 3].map((one) => onAbort(stop.signal, () => called.push(one)));
  assert.equal(getEventListeners(stop.signal, 'abort').length, 1);
  remove[1]?.();
  stop.abort();
  assert.deepEqual(called, [1, 3]);
});

test('calls an action immediately if the signal is already aborted', () => {
  const called: string[] = [];
  onAbort(AbortSignal.abort(), () => called.push('late'));
  assert.deepEqual(called, ['late']);
});
