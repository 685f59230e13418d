/** Definitions and programs in colours: every character stays where it was. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SourceLanguage, sourceTokens } from './source-tokens.ts';

const words = (line: string, language: SourceLanguage) =>
  (sourceTokens([line], language)[0] ?? [])
    .filter(({ kind }) => kind !== 'plain')
    .map(({ kind, text }) => `${kind} ${text}`);

test('keys, texts, numbers and remarks of YAML are told apart', () => {
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

test('those of JSON and TypeScript too', () => {
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

test('nothing of the text is lost, whatever it is', () => {
  for (const language of ['yaml', 'json', 'typescript'] as const) {
    for (const line of ['', '"open', "it's: 'x", '`a`', '# <b>', '\\"', 'a: b: c', '/* x */ y']) {
      const [tokens = []] = sourceTokens([line], language);
      assert.equal(tokens.map(({ text }) => text).join(''), line);
    }
  }
});
