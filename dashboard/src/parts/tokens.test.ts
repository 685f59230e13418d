/** Syntax highlighting: no character is lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { indented, type SourceLanguage, tokensOf } from './tokens.ts';

const words = (line: string, language: SourceLanguage) =>
  tokensOf(line, language)
    .filter(({ kind }) => kind !== 'plain')
    .map(({ kind, text }) => `${kind} ${text}`);

test('recognizes keys, strings, numbers and comments of YAML', () => {
  assert.deepEqual(words('limits: { timeout: 2m, records: 5 } # enough', 'yaml'), [
    'key limits',
    'key timeout',
    'key records',
    'number 5',
    'comment # enough',
  ]);
  assert.deepEqual(words('  url: "http://a/#b"', 'yaml'), ['key url', 'string "http://a/#b"']);
  assert.deepEqual(words('  - name: $.a # b', 'yaml'), ['key name', 'comment # b']);
});

test('recognizes tokens of JSON and TypeScript', () => {
  assert.deepEqual(words('  "key": ["a", true, 1.5]', 'json'), [
    'key "key"',
    'string "a"',
    'literal true',
    'number 1.5',
  ]);
  assert.deepEqual(words("const a = 'b'; // c", 'typescript'), [
    'literal const',
    "string 'b'",
    'comment // c',
  ]);
});

test('recognizes exponents and escaped quotes in JSON', () => {
  assert.deepEqual(words('{"a: \\"b": ["c", -1.5e3, true, null]}', 'json'), [
    'key "a: \\"b"',
    'string "c"',
    'number -1.5e3',
    'literal true',
    'literal null',
  ]);
  assert.deepEqual(words("it's no JSON, and isn't", 'json'), []);
});

test('keeps every character of incomplete or unusual lines', () => {
  for (const language of ['yaml', 'json', 'typescript'] as const) {
    for (const line of ['', '"open', "it's: 'x", '`a`', '# <b>', '\\"', 'a: b: c', '/* x */ y']) {
      const tokens = tokensOf(line, language);
      assert.equal(tokens.map(({ text }) => text).join(''), line);
    }
  }
});

test('keeps every character of any text', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const parts = tokensOf(text, 'json').map((token) => token.text);
      assert.equal(parts.join(''), text);
    }),
  );
});

test('indents JSON without changing its texts and numbers', () => {
  const value = { a: [1, -2.5, { b: '{"c": [1, 2]}\n' }], empty: [{}, []], text: 'ends in \\', no: null };
  assert.equal(indented(JSON.stringify(value)), JSON.stringify(value, null, 2));
  assert.equal(indented(JSON.stringify(value, null, 7)), JSON.stringify(value, null, 2));
  assert.equal(
    indented('{"n":1.0,"long":9007199254740993}'),
    '{\n  "n": 1.0,\n  "long": 9007199254740993\n}',
  );
  assert.equal(indented('{"open": '), '{"open": ');
});
