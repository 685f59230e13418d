/** Tables and wrapped text on terminals. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JOB_HEADS } from './job-words.ts';
import { table, wrapped } from './terminal.ts';

const ID = `job_${'0'.repeat(26)}`;
const ROWS = [
  [ID, 'default/people', 'failed', 'x'.repeat(200)],
  [ID, 'default/slow', 'running', ''],
];

test('a table fits the terminal, and ids are never cut', () => {
  const lines = table(ROWS, 100);
  for (const line of lines) {
    assert.ok(line.length <= 100, line);
    assert.ok(line.startsWith(`${ID}  default/`));
  }
  assert.match(lines[0] ?? '', /x…$/);
});

test('nothing is cut without a terminal, and ids stay whole even on a very narrow one', () => {
  assert.ok(table(ROWS, undefined)[0]?.endsWith('x'.repeat(200)));
  assert.ok(table(ROWS, 20)[0]?.startsWith(ID));
});

test('text wraps between words and keeps its indent, and a long word is not broken', () => {
  assert.equal(wrapped('one two three\n  four five six', 10), 'one two\nthree\n  four\n  five six');
  assert.equal(wrapped('https://example.com/a', 10), 'https://example.com/a');
});

const NOW = Date.parse('2026-11-22T10:00:00.000Z');
const JOBS = [
  [
    ID,
    'default/package-authors',
    'finished',
    'api',
    '2026-11-22T09:56:40.000Z',
    '380 ms',
    'version 1: 120 records',
  ],
  [
    ID,
    'default/people',
    'failed',
    'schedule',
    '2026-11-20T09:00:00.000Z',
    '15 min',
    `timeout: ${'x'.repeat(90)}`,
  ],
];

test('a time after `until` is not made relative', () => {
  const until = 'read until 2026-12-22T10:00:00.000Z';
  assert.equal(table([[until]], 120, [], NOW)[0], until);
});

test('at 80 columns a list of jobs has whole ids, workflows and times, and drops other columns', () => {
  assert.deepEqual(table(JOBS, 80, JOB_HEADS, NOW), [
    `JOB${' '.repeat(29)}WORKFLOW                 STATE     QUEUED`,
    `${ID}  default/package-authors  finished  3 min ago`,
    `${ID}  default/people           failed    2 days ago`,
  ]);
  const wide = table(JOBS, 120, JOB_HEADS, NOW);
  assert.match(wide[0] ?? '', /QUEUED +DURATION +RESULT$/);
  assert.match(wide[2] ?? '', /^.{119}…$/);
  for (const line of wide) assert.ok(line.length <= 120, line);
});

test('without a terminal a table has no headings, and times stay ISO 8601', () => {
  assert.match(table(JOBS, undefined, JOB_HEADS, NOW)[0] ?? '', /^job_0+ .* 2026-11-22T09:56:40\.000Z /);
});

test('a time after a few words becomes relative, but not within a sentence of someone else', () => {
  const rows = [['expires 2026-11-24T10:00:00.000Z', 'error: not before 2026-11-24T10:00:00.000Z']];
  assert.deepEqual(table(rows, 120, [], NOW), [
    'expires in 2 days  error: not before 2026-11-24T10:00:00.000Z',
  ]);
});

test('a long URL is cut in its middle', () => {
  const url = `https://hooks.example.com/${'a'.repeat(60)}/42`;
  assert.match(table([[ID, url]], 60)[0] ?? '', /https:\/\/hooks.*….*\/42$/);
});

test('a long text is cut before a column is dropped', () => {
  const heads = [{ name: 'workflow' }, { name: 'records', drop: 1 }, { name: 'last job' }];
  const [, line = ''] = table([['default/people', 'no records yet', `failed: ${'x'.repeat(90)}`]], 80, heads);
  assert.match(line, /^default\/people {2}no records yet {2}failed: x+…$/);
});
