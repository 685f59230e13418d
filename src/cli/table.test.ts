/** Tables at a shell. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { table, wrapped } from './table.ts';

const ID = `job_${'0'.repeat(26)}`;
const ROWS = [
  [ID, 'default/people', 'failed', 'x'.repeat(200)],
  [ID, 'default/slow', 'running', ''],
];

test('a table is as wide as the terminal, and its ids are whole', () => {
  const lines = table(ROWS, 100);
  for (const line of lines) {
    assert.ok(line.length <= 100, line);
    assert.ok(line.startsWith(`${ID}  default/`));
  }
  assert.match(lines[0] ?? '', /x…$/);
});

test('without a terminal nothing is cut, and in a very narrow one what can be read is left', () => {
  assert.ok(table(ROWS, undefined)[0]?.endsWith('x'.repeat(200)));
  assert.ok(table(ROWS, 20)[0]?.startsWith(ID));
});

test('text is broken between words, as far in as it began, and a word that is too long is left', () => {
  assert.equal(wrapped('one two three\n  four five six', 10), 'one two\nthree\n  four\n  five six');
  assert.equal(wrapped('https://example.com/a', 10), 'https://example.com/a');
});
