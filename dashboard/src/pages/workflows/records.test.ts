/** Columns and sorting of records. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressIn, chosenFields, fieldsOf, shownFields, sorted, valueIn } from './records.ts';

test('lists id, name and email first, then other fields in order of appearance', () => {
  const records = [
    { zip: 1, id: 'a', email: 'a@example.com' },
    { id: 'b', age: 3 },
  ];
  assert.deepEqual(fieldsOf(records), ['id', 'email', 'zip', 'age']);
});

test('shows a few columns by default, or the chosen ones, and always the id', () => {
  const fields = ['id', ...Array.from({ length: 30 }, (_, at) => `f${at}`)];
  assert.equal(shownFields(fields, undefined).length, 10);
  assert.deepEqual(shownFields(fields, chosenFields('f3,f1')), ['id', 'f1', 'f3']);
  assert.deepEqual(chosenFields('a%2Cb,100%'), ['a,b', '100%']);
});

test('sorts numbers by value, text naturally, and missing values last', () => {
  const records = [{ id: 'a', n: 10 }, { id: 'b' }, { id: 'c', n: 9 }];
  const ids = (by: string | undefined) => sorted(records, by).map(({ id }) => id);
  assert.deepEqual(
    [ids(undefined), ids('n'), ids('-n')],
    [
      ['a', 'b', 'c'],
      ['c', 'a', 'b'],
      ['a', 'c', 'b'],
    ],
  );
  const named = [{ id: 'r10' }, { id: 'r9' }];
  assert.deepEqual(
    sorted(named, 'id').map(({ id }) => id),
    ['r9', 'r10'],
  );
});

test('reads a field with the name of an inherited property', () => {
  assert.equal(valueIn({ id: 'a', constructor: 'x' }, 'constructor'), 'x');
  assert.equal(valueIn({ id: 'b' }, 'constructor'), undefined);
});

test('links only http and https URLs', () => {
  assert.equal(addressIn('https://example.com/a'), 'https://example.com/a');
  for (const value of ['javascript:alert(1)', 'data:text/html,x', 'see https://example.com', 7, null]) {
    assert.equal(addressIn(value), null);
  }
});
