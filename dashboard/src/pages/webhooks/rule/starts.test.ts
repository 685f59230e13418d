/** Starting points of filters, and the fields that they ask about. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  expressionOf,
  fieldsFor,
  fieldsIn,
  isUnfinished,
  labelOf,
  START_OPTIONS,
  type Start,
  type StartKind,
  startOf,
  typedField,
  valueMistake,
} from './starts.ts';

const RECORDS = [
  { id: '1', name: 'Lamp', price: null, 'unit price': 3 },
  { id: '2', price: 40, stock: { amount: 3, in: 'Ghent', of: { more: 1 } }, tags: ['new'] },
];

test('writes the expression of each starting point', () => {
  const write = (kind: StartKind, value = '') => expressionOf({ kind, field: '.price', value });
  assert.equal(write('fallsBy', '5 %'), 'fallsBy(previous.price, record.price, "5%")');
  assert.equal(write('risesBy', '5'), 'risesBy(previous.price, record.price, 5)');
  assert.equal(write('fallsBelow', ' 49.90 '), 'fallsBelow(previous.price, record.price, 49.90)');
  assert.equal(write('crosses', '-1'), 'crosses(previous.price, record.price, -1)');
  assert.equal(write('added'), 'change == "added"');
  assert.equal(write('removed'), 'change == "removed"');
  assert.equal(write('contains', 'say "hi"'), String.raw`record.price.contains("say \"hi\"")`);
});

test('recognizes its own expressions, also incomplete ones, and no others', () => {
  for (const { value: kind } of START_OPTIONS)
    for (const field of ['', '.price', '.stock.amount', '["unit price"]'])
      for (const value of ['', '5', '5%', 'new "word"']) {
        const start = { kind, field, value } as Start;
        const found = startOf(expressionOf(start));
        assert.equal(found && expressionOf(found), expressionOf(start));
      }
  for (const own of [
    '',
    'record.price < 50',
    'fallsBy(previous.price, record.cost, "5%")',
    'fallsBy(previous.price, record.price, "5%") && record.stock > 0',
  ])
    assert.equal(startOf(own), undefined, own);
});

test('says what is missing', () => {
  const mistake = (kind: StartKind, value: string) => valueMistake({ kind, field: '.price', value });
  assert.equal(mistake('fallsBy', '5 %'), undefined);
  assert.equal(mistake('fallsBelow', '5 %'), 'Enter a number, such as 50');
  assert.equal(mistake('fallsBelow', '1,000'), 'Enter a number, such as 50');
  assert.equal(mistake('contains', ' '), 'Enter a word');
  assert.equal(mistake('added', ''), undefined);
  const isMissing = (filter: string) => isUnfinished(startOf(filter));
  assert.ok(isMissing('fallsBy(previous, record, "5%")'));
  assert.ok(isMissing('fallsBelow(previous.price, record.price, )'));
  assert.ok(!isMissing('fallsBelow(previous.price, record.price, 5)'));
  assert.ok(!isMissing('change == "added"'));
  assert.ok(!isMissing('record.price < 5'));
});

test('finds fields and fields of objects, and quotes names that are not identifiers', () => {
  const fields = fieldsIn(RECORDS);
  assert.deepEqual(
    fields.map(({ label, accessor, type }) => [label, accessor, type]),
    [
      ['id', '.id', 'text'],
      ['name', '.name', 'text'],
      ['unit price', '["unit price"]', 'number'],
      ['price', '.price', 'number'],
      ['stock', '.stock', 'other'],
      ['stock.amount', '.stock.amount', 'number'],
      ['stock.in', '.stock["in"]', 'text'],
      ['stock.of', '.stock.of', 'other'],
      ['tags', '.tags', 'other'],
    ],
  );
  for (const { label, accessor } of fields) {
    assert.equal(typedField(label, fields), accessor);
    assert.equal(labelOf(accessor, []), label);
  }
  assert.equal(typedField('unknown.field name', []), '.unknown["field name"]');
  assert.deepEqual(
    fieldsFor('contains', fields)
      .map(({ label }) => label)
      .slice(0, 4),
    ['name', 'stock.in', 'id', 'unit price'],
  );
});
