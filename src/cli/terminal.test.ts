/** Tables at a shell. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JOB_HEADS } from './job-words.ts';
import { table, wrapped } from './terminal.ts';

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

test('at 80 columns a list of jobs has whole ids, workflows and times, and leaves out what matters less', () => {
  assert.deepEqual(table(JOBS, 80, JOB_HEADS, NOW), [
    `JOB${' '.repeat(29)}WORKFLOW                 STATE     QUEUED`,
    `${ID}  default/package-authors  finished  3 min ago`,
    `${ID}  default/people           failed    2 days ago`,
  ]);
  const wide = table(JOBS, 120, JOB_HEADS, NOW);
  assert.match(wide[0] ?? '', /QUEUED +TOOK +RESULT$/);
  assert.match(wide[2] ?? '', /^.{119}…$/);
  for (const line of wide) assert.ok(line.length <= 120, line);
});

test('programs get no headings, and times as they are', () => {
  assert.match(table(JOBS, undefined, JOB_HEADS, NOW)[0] ?? '', /^job_0+ .* 2026-11-22T09:56:40\.000Z /);
});

test('a URL that is too long keeps its end', () => {
  const url = `https://hooks.example.com/${'a'.repeat(60)}/42`;
  assert.match(table([[ID, url]], 60)[0] ?? '', /https:\/\/hooks.*….*\/42$/);
});

test('a long text is cut before a column is left out for it', () => {
  const heads = [{ name: 'workflow' }, { name: 'records', drop: 1 }, { name: 'last job' }];
  const [, line = ''] = table([['default/people', 'no records yet', `failed: ${'x'.repeat(90)}`]], 80, heads);
  assert.match(line, /^default\/people {2}no records yet {2}failed: x+…$/);
});
