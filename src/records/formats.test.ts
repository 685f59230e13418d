/** Cells of CSV: quoting, nesting, and text that a spreadsheet would evaluate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine, csvRow } from './formats.ts';

const cells: [value: unknown, cell: string][] = [
  ['plain', 'plain'],
  ['', '""'],
  [null, '""'],
  ['a,b', '"a,b"'],
  ['say "hi"', '"say ""hi"""'],
  ['two\r\nlines', '"two\r\nlines"'],
  [true, 'true'],
  [-1.5, '-1.5'],
  [{ a: [1, null] }, '"{""a"":[1,null]}"'],
  ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`],
  ['+49 123', "'+49 123"],
  ['+49123', '+49123'],
  ['-1e5', '-1e5'],
  ['-1+1', "'-1+1"],
  ['@cmd', "'@cmd"],
  ['\tx', "'\tx"],
  ['\rx', `"'\rx"`],
  ['-', "'-"],
];
for (const [value, expected] of cells) {
  test(`writes ${JSON.stringify(value)} as ${JSON.stringify(expected)}`, () => {
    assert.equal(csvRow(JSON.stringify({ field: value }), ['field']), `${expected}\r\n`);
  });
}

test('keeps numbers that a double would round', () => {
  assert.equal(
    csvRow('{"n":12345678901234567890,"deep":[0.10]}', ['n', 'deep']),
    '12345678901234567890,[0.10]\r\n',
  );
});

test('leaves a cell empty if the record lacks the field, even for inherited property names', () => {
  assert.equal(csvRow('{"a":1}', ['a', 'b', 'constructor']), '1,,\r\n');
});

test('escapes formulas in field names too', () => {
  assert.equal(csvLine(['id', '=1', 'a"b']), `id,'=1,"a""b"\r\n`);
});
