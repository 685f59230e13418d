/** Tests which line of a failure is shown in a list. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastLine } from './last-line.ts';

test('a failure is told by what was said last', () => {
  assert.equal(
    lastLine('It ended with exit code 1:\nTraceback …\nValueError: no such page\n'),
    'ValueError: no such page',
  );
  assert.equal(lastLine('The source answered 503'), 'The source answered 503');
});

test('the frames below an error are not what was said', () => {
  assert.equal(
    lastLine('It ended:\nError: no such page\n    at run (file:///a.mts:2:1)\n    at next (<anonymous>)\n'),
    'Error: no such page',
  );
});

test('of nothing but frames the last one is told', () => {
  assert.equal(lastLine('    at run (file:///a.mts:2:1)'), '    at run (file:///a.mts:2:1)');
});
