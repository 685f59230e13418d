/** Many that wait for one signal. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { onAbort } from './stop-order.ts';

test('all hear of the signal once, over one listener, but for those that were taken away', () => {
  const stop = new AbortController();
  const heard: number[] = [];
  const forget = [1, 2, 3].map((one) => onAbort(stop.signal, () => heard.push(one)));
  assert.equal(getEventListeners(stop.signal, 'abort').length, 1);
  forget[1]?.();
  stop.abort();
  assert.deepEqual(heard, [1, 3]);
});

test('who comes too late hears of it at once', () => {
  const heard: string[] = [];
  onAbort(AbortSignal.abort(), () => heard.push('late'));
  assert.deepEqual(heard, ['late']);
});
