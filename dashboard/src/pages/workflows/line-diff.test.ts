/** What differs between two texts, line by line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineDiff } from './line-diff.ts';

const SIGNS = { same: ' ', added: '+', removed: '-' };
const diff = (before: string, after: string) =>
  lineDiff(before, after).map(({ kind, text }) => SIGNS[kind] + text);

test('a changed line is gone first, and new after it', () => {
  assert.deepEqual(diff('a\nb\nc\n', 'a\nx\nc\n'), [' a', '-b', '+x', ' c']);
});

test('lines that stayed in between are found', () => {
  assert.deepEqual(diff('a\nb\nc\nd', 'b\nx\nd\ne'), ['-a', ' b', '-c', '+x', ' d', '+e']);
  assert.deepEqual(diff('', 'a'), ['+a']);
  assert.deepEqual(diff('a', ''), ['-a']);
  assert.deepEqual(diff('a\na', 'a\na\na'), [' a', ' a', '+a']);
});
