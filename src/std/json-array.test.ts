/** Extracting the elements of an array from a JSON text, for any chunks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { splitElements, splitJsonArray } from './json-array.ts';

function split(text: string, steps: string[], chunkBytes = 7) {
  const splitter = splitElements(steps, 1 << 20);
  const bytes = Buffer.from(text);
  const elements: string[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    elements.push(...splitter.push(bytes.subarray(at, at + chunkBytes)));
  }
  elements.push(...splitter.end());
  return { elements, around: splitter.around(), found: splitter.found() };
}

test('finds the elements and the text around them, for any JSON in any chunks', () => {
  const name = fc.constantFrom('data', 'items', 'a"b', 'é', '\\', 'x');
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue(), { maxLength: 6 }),
      fc.array(name, { maxLength: 3 }),
      fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }),
      fc.integer({ min: 1, max: 40 }),
      fc.constantFrom(0, 2),
      (elements, steps, beside, chunkBytes, indent) => {
        let value: unknown = elements;
        let empty: unknown = [];
        for (const step of steps.toReversed()) {
          const { [step]: _, ...others } = beside;
          value = { before: { [step]: [1, 2] }, ...others, [step]: value, after: [[{}], '[,'] };
          empty = { before: { [step]: [1, 2] }, ...others, [step]: empty, after: [[{}], '[,'] };
        }
        const found = split(JSON.stringify(value, null, indent), steps, chunkBytes);
        assert.deepEqual(
          found.elements.map((text) => JSON.parse(text) as unknown),
          JSON.parse(JSON.stringify(elements)),
        );
        assert.deepEqual(JSON.parse(found.around), JSON.parse(JSON.stringify(empty)));
        assert.equal(found.found, true);
      },
    ),
  );
});

test('ignores an array with the same name at another path', () => {
  const { elements, around } = split('{"x":{"items":[1]},"items":{"items":[2]},"y":[{"items":[3]}]}', [
    'items',
  ]);
  assert.deepEqual(elements, []);
  assert.equal(around, '{"x":{"items":[1]},"items":{"items":[2]},"y":[{"items":[3]}]}');
});

test('errors name the element', () => {
  const cases: [text: string, sentence: RegExp][] = [
    ['[{"a":1},{"a":', /incomplete: it ends after record 1/],
    ['[1,,2]', /missing after element 1/],
    ['[1,]', /missing after element 1/],
    ['{"a":"', /is incomplete/],
    ['', /is empty/],
    [']', /no opening bracket/],
  ];
  for (const [text, sentence] of cases) assert.throws(() => split(text, []), sentence, text);
  const long = splitElements([], 10);
  assert.throws(() => long.push(Buffer.from(`["${'x'.repeat(20)}`)), /Element 1 .* longer than 10 bytes/);
  assert.throws(() => split('["', []).around, /is incomplete/);
  const broken = splitElements([], 10);
  assert.throws(() => broken.push(Buffer.from('["\xff"]', 'latin1')), /Element 1 .* not UTF-8/);
});

test('white space, as JSON defines it, is not part of an element', () => {
  const splitter = splitJsonArray(16);
  const elements = ['[', ' '.repeat(20), '{"a":1}', '\r\n', ',\u00a0', '{}', '\t]'].flatMap((text) =>
    splitter.push(Buffer.from(text)),
  );
  assert.deepEqual([...elements, ...splitter.end()], ['{"a":1}', '\u00a0{}']);
});

test('an extra brace does not end the array', () => {
  assert.deepEqual(split('[{"a":1}},{"a":2}]', []).elements, ['{"a":1}}', '{"a":2}']);
  assert.throws(() => split('[{"a":1}}', []), /is incomplete/);
});
