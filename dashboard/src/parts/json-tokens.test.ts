/** JSON as pieces that are coloured apart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { tokensOf } from './json-tokens.ts';

test('keys, texts, numbers and words are told apart', () => {
  const kinds = tokensOf('{"a: \\"b": ["c", -1.5e3, true, null]}')
    .filter(({ kind }) => kind !== 'plain')
    .map(({ kind, text }) => `${kind} ${text}`);
  assert.deepEqual(kinds, ['key "a: \\"b"', 'string "c"', 'number -1.5e3', 'literal true', 'literal null']);
});

test('of no text anything is lost', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      assert.equal(
        tokensOf(text)
          .map((token) => token.text)
          .join(''),
        text,
      );
    }),
  );
});
