/** Log lines, and the notes between them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Line, logRows, plainLog } from './log.ts';

const line = (seq: number, text: string, attempt?: number): Line => ({
  seq,
  text,
  time: '2026-11-21T03:04:05.000Z',
  level: 'info',
  ...(attempt === undefined ? {} : { attempt }),
});
const shown = (lines: Line[], { search = '', isNewestFirst = false } = {}) =>
  logRows(lines, { search, isNewestFirst }).map((row) =>
    row.kind === 'line' ? row.line.text : `(${row.text})`,
  );

test('notes how many lines are missing and where an attempt starts', () => {
  assert.deepEqual(shown([line(1, 'a', 1), line(5, 'b', 1), line(1, 'c', 2)]), [
    'a',
    '(3 lines omitted: the log is too long)',
    'b',
    '(Attempt 2)',
    'c',
  ]);
});

test('searches without regard to case', () => {
  assert.deepEqual(shown([line(1, 'One'), line(2, 'two'), line(4, 'ONE more')], { search: 'one' }), [
    'One',
    'ONE more',
  ]);
});

test('shows the newest line first', () => {
  assert.deepEqual(shown([line(1, 'a'), line(2, 'b')], { isNewestFirst: true }), ['b', 'a']);
});

test('writes a file with one line per log line', () => {
  assert.equal(plainLog([line(1, 'a')]), '2026-11-21T03:04:05.000Z info  a\n');
});
