/** What a terminal would act upon does not get through. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printable } from './printable.ts';

test('escape sequences of either kind lose their first character, text and line ends stay', () => {
  assert.equal(printable('a\u001b[31mred\u0007\r\n\tb'), 'a[31mred\n\tb');
  assert.equal(printable('\u009b31m\u0085é 名 😀'), '31mé 名 😀');
  assert.equal(printable('safe\u202egnp.exe\u2066\u2028!'), 'safegnp.exe!');
});
