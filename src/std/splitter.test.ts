/** Splitting JSON arrays, lines and CSV, with chunks that end at any byte. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { splitCsv } from './csv-rows.ts';
import { splitJsonArray } from './json-array.ts';
import { MalformedError, splitLines } from './lines.ts';

const MAX = 1_000;
const KINDS = { json: splitJsonArray, lines: splitLines, csv: splitCsv } as const;

/** The pieces that a splitter returns for these chunks. */
function split(kind: keyof typeof KINDS, chunks: readonly Uint8Array[], max = MAX): unknown[] {
  const splitter = KINDS[kind](max);
  return [...chunks.flatMap((chunk): unknown[] => splitter.push(chunk)), ...splitter.end()];
}

function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ordered = [0, ...[...places].sort((a, b) => a - b), bytes.length];
  return ordered.slice(1).map((to, at) => bytes.subarray(ordered[at], to));
}

/** Tries every way to cut the text in two, and one byte at a time. */
function assertSplits(kind: keyof typeof KINDS, text: string, expected: unknown[]): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at <= bytes.length; at++) {
    assert.deepEqual(split(kind, cutAt(bytes, [at])), expected, `cut at ${at}`);
  }
  assert.deepEqual(
    split(
      kind,
      [...bytes].map((byte) => Buffer.of(byte)),
    ),
    expected,
  );
}

test('splits a JSON array into its elements, wherever chunks end', () => {
  assertSplits(
    'json',
    '\ufeff \r\n[ {"a":"],[{\\"}\\\\"} ,\t{"b":[1,{"c":[]}]},"é😀,]", -1.5e3 ,null,[[]],{} ]\n ',
    ['{"a":"],[{\\"}\\\\"}', '{"b":[1,{"c":[]}]}', '"é😀,]"', '-1.5e3', 'null', '[[]]', '{}'],
  );
  for (const empty of ['[]', ' [ ] ']) assertSplits('json', empty, []);
});

test('returns the elements of any JSON array, for any formatting and any chunks', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue()),
      fc.constantFrom(undefined, 2, '\t'),
      fc.array(fc.nat(5_000)),
      (values, space, cuts) => {
        const bytes = Buffer.from(JSON.stringify(values, null, space));
        const places = cuts.map((place) => Math.min(place, bytes.length));
        const texts = split('json', cutAt(bytes, places), 1_000_000) as string[];
        assert.deepEqual(
          texts.map((text) => JSON.stringify(JSON.parse(text))),
          values.map((value) => JSON.stringify(value)),
        );
      },
    ),
  );
});

test('names the element in errors about invalid JSON arrays', () => {
  for (const [text, sentence] of [
    ['', /contains no JSON array/],
    ['{"a":1}', /does not start with a JSON array/],
    ['{"a":[1]}\n{"a":2}', /does not start with a JSON array/],
    ['[1,]', /missing after element 1/],
    ['[,1]', /missing after element 0/],
    ['[1,,2]', /missing after element 1/],
    ['[1] 2', /after the end/],
    ['[1][2]', /after the end/],
    ['[{"a":1}', /not closed.*element 0/],
    ['[1,{"a":"', /not closed.*element 1/],
    ['["\\"]', /not closed/],
    [`["${'x'.repeat(MAX)}"]`, /Element 1 .* longer than 1000 bytes/],
  ] as const) {
    for (const chunks of [[Buffer.from(text)], [...Buffer.from(text)].map((byte) => Buffer.of(byte))]) {
      assert.throws(
        () => split('json', chunks),
        (error) => error instanceof MalformedError && sentence.test(error.message),
        text,
      );
    }
  }
  assert.throws(() => split('json', [Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d])]), /Element 1 .* not UTF-8/);
});

test('splits lines at every line break, and skips blank lines', () => {
  assertSplits('lines', '\ufeff{"a":"é"}\r\n\n  \n{"b":"😀"}\n3', ['{"a":"é"}', '{"b":"😀"}', '3']);
  assertSplits('lines', '', []);
  assertSplits('lines', '1\n', ['1']);
  assert.throws(
    () => split('lines', [Buffer.from('1\n'), Buffer.from('x'.repeat(MAX + 1))]),
    /Line 2 is longer/,
  );
  assert.throws(() => split('lines', [Buffer.from([0x31, 0x0a, 0xff])]), /after line 1 is not UTF-8/);
});

test('splits CSV into rows of fields, wherever chunks end', () => {
  assertSplits('csv', '\ufeffid,name\r\n1,"a ""b"", c\r\nd"\r\n\r\n2,\n3,""\n"4",5" é😀', [
    ['id', 'name'],
    ['1', 'a "b", c\r\nd'],
    ['2', null],
    ['3', ''],
    ['4', '5" é😀'],
  ]);
  assertSplits('csv', '', []);
  assertSplits('csv', 'a\r\n', [['a']]);
  assertSplits('csv', '""', [['']]);
  assertSplits('csv', ',\n', [[null, null]]);
  assertSplits('csv', 'a,b\r', [['a', 'b']]);
});

test('reads any rows back from their CSV', () => {
  const field = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(',', '"', '\r', '\n', 'é') }));
  fc.assert(
    fc.property(fc.array(fc.array(field, { minLength: 1 })), fc.array(fc.nat(2_000)), (rows, cuts) => {
      const text = rows
        .map((row) => row.map((one) => `"${one.replaceAll('"', '""')}"`).join(','))
        .join('\r\n');
      const bytes = Buffer.from(text);
      const places = cuts.map((place) => Math.min(place, bytes.length));
      assert.deepEqual(split('csv', cutAt(bytes, places), 1_000_000), rows);
    }),
  );
});

test('names the row in errors about invalid CSV', () => {
  for (const [text, sentence] of [
    ['id\n"1" x\n', /Row 2: there is text after the closing quote of field 1/],
    ['id\n1,"2', /Row 2: a quoted field is not closed/],
    [`id\n"${'x'.repeat(MAX)}`, /Row 2 is longer than 1000 characters. A closing quote may be missing/],
  ] as const) {
    assert.throws(() => split('csv', [Buffer.from(text)]), sentence);
  }
  assert.throws(() => split('csv', [Buffer.from([0x69, 0x64, 0x0a, 0xff])]), /is not UTF-8/);
});
