/** Removal of characters that a terminal would interpret. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printable } from './printable.ts';

test('removes the first character of escape sequences, and keeps text and line breaks', () => {
  assert.equal(printable('a\u001b[31mred\u0007\r\n\tb'), 'a[31mred\n\tb');
  assert.equal(printable('\u009b31m\u0085é 名 😀'), '31mé 名 😀');
  assert.equal(printable('safe\u202egnp.exe\u2066\u2028!'), 'safegnp.exe!');
});
