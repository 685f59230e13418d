/** The text of the progress bar, and when it is drawn. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProgressBar, progressLine } from './progress-bar.ts';

test('shows progress, count, speed and remaining time', () => {
  const input = { done: 25, total: 100, count: 50_000, noun: 'records', elapsedMs: 4_000 };
  assert.equal(progressLine(input), '[######··················] 25 %  50,000 records  12,500/s  12 s left');
  assert.equal(progressLine({ ...input, total: undefined }), '50,000 records  12,500/s');
  assert.match(progressLine({ ...input, done: 1 }), / 7 min left$/);
  assert.match(progressLine({ ...input, done: 0 }), /0 % {2}50,000 records {2}12,500\/s$/);
});

test('draws at most ten times per second, clears its line, and draws nothing without a terminal', () => {
  for (const isTTY of [true, false]) {
    let now = 0;
    const written: string[] = [];
    const screen = { isTTY, write: (text: string) => written.push(text) };
    const bar = createProgressBar({ screen, total: 10, noun: 'records', clock: () => now });
    for (; now < 1_000; now += 10) bar.update({ done: 1, count: 1 });
    bar.stop();
    bar.update({ done: 2, count: 2 });
    assert.equal(written.length, isTTY ? 11 : 0);
    assert.equal(written.at(-1), isTTY ? '\r\x1b[K' : undefined);
  }
});
