/** Fields with expectations that no record of a run has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { absentFields } from './absent-fields.ts';
import { EXPECT_NO_FIELD } from './expect.ts';

const found = (...names: string[]) => ({
  records: 2,
  duplicates: 0,
  fields: names.map((name) => ({ name, present: 1, filled: 1, kinds: {} })),
  omitted: 0,
});

test('a field that no record has is named with the most similar field', () => {
  const fields = {
    prise: { ...EXPECT_NO_FIELD, min: 0 },
    price: { ...EXPECT_NO_FIELD, min: 0 },
    'address.town': { ...EXPECT_NO_FIELD, unique: true },
  };
  assert.deepEqual(absentFields(fields, found('id', 'price', 'address')), [
    'No record has the field `prise`, so `expect` did not check it. Did you mean `price`?',
    'No record has the field `address.town`, so `expect` did not check it',
  ]);
});

test('nothing is said of fields with a finding, and of runs that have too many fields or no records', () => {
  const fields = { prise: { ...EXPECT_NO_FIELD, filled: 90 } };
  assert.deepEqual(absentFields(fields, found('price')), []);
  const checked = { prise: { ...EXPECT_NO_FIELD, min: 0 } };
  assert.deepEqual(absentFields(checked, { ...found('price'), omitted: 1 }), []);
  assert.deepEqual(absentFields(checked, { ...found(), records: 0 }), []);
});
