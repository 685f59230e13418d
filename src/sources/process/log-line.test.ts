/** The log levels of lines of common loggers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLogLine } from './stderr.ts';

const LINES: [line: string, level: string][] = [
  ['plain text', 'info'],
  ['warn: careful', 'warn'],
  ['Error: no such file', 'error'],
  ['[debug] x', 'debug'],
  ['WARNING:root:from Python', 'warn'],
  ['CRITICAL the end', 'error'],
  ['INFO Starting sync', 'info'],
  ['2026-01-01 06:00:00,123 | WARNING  | singer_sdk | unsorted', 'warn'],
  ['2026-01-01T06:00:00.000Z ERROR broken', 'error'],
  ['error handling is on', 'info'],
  ['The ERROR is in the middle', 'info'],
  ['{"level":"warning","message":"x"}', 'warn'],
  ['{"level":40,"msg":"x"}', 'warn'],
  ['{"severity":"ERROR"}', 'error'],
  ['{"level":"strange"}', 'info'],
  ['{"level":', 'info'],
  ['{"level":"constructor"}', 'info'],
  ['{"level":"__proto__"}', 'info'],
  ['{"flowhook":"log","level":"error","text":5}', 'error'],
  ['', 'info'],
];

for (const [line, level] of LINES) {
  test(`${JSON.stringify(line)} is ${level}`, () => {
    assert.deepEqual(readLogLine(line), { kind: 'log', level, text: line });
  });
}

test('lines for Flowhook set a text or the progress, and invalid values in them are left out', () => {
  assert.deepEqual(readLogLine('{"flowhook":"log","level":"warn","text":"x"}'), {
    kind: 'log',
    level: 'warn',
    text: 'x',
  });
  assert.deepEqual(readLogLine('{"flowhook":"progress","pages":3,"message":"m","more":1}'), {
    kind: 'progress',
    pages: 3,
    message: 'm',
  });
  assert.deepEqual(readLogLine('{"flowhook":"progress","pages":-1,"message":5}'), { kind: 'progress' });
  const long = readLogLine(JSON.stringify({ flowhook: 'progress', message: 'x'.repeat(1_000) }));
  assert.equal(long.kind === 'progress' && long.message?.length, 500);
});
