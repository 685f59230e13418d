/** Records as rows and columns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressIn, chosenFields, fieldsOf, shownFields, sorted, valueIn } from './records.ts';

test('what every record may have comes first, then the others as they come', () => {
  const records = [
    { zip: 1, id: 'a', email: 'a@example.com' },
    { id: 'b', age: 3 },
  ];
  assert.deepEqual(fieldsOf(records), ['id', 'email', 'zip', 'age']);
});

test('a few columns unless they are chosen, and always the id', () => {
  const fields = ['id', ...Array.from({ length: 30 }, (_, at) => `f${at}`)];
  assert.equal(shownFields(fields, undefined).length, 10);
  assert.deepEqual(shownFields(fields, chosenFields('f3,f1')), ['id', 'f1', 'f3']);
  assert.deepEqual(chosenFields('a%2Cb,100%'), ['a,b', '100%']);
});

test('numbers are sorted by size, words as people do, and what is missing stands last', () => {
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

test('a field may be called as what every object has', () => {
  assert.equal(valueIn({ id: 'a', constructor: 'x' }, 'constructor'), 'x');
  assert.equal(valueIn({ id: 'b' }, 'constructor'), undefined);
});

test('only addresses of the web are followed', () => {
  assert.equal(addressIn('https://example.com/a'), 'https://example.com/a');
  for (const value of ['javascript:alert(1)', 'data:text/html,x', 'see https://example.com', 7, null]) {
    assert.equal(addressIn(value), null);
  }
});
