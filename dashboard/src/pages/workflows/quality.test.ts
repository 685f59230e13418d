/** Expectations that are made from profiles. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withExpectation, yamlOf } from './quality.ts';

test('the expectation of a field is added to a definition, or written as YAML', () => {
  const expected = { type: 'number', filled: '98%' };
  const before = { source: 1, expect: { otherwise: 'warn', fields: { url: {}, price: { min: 0 } } } };
  assert.deepEqual(withExpectation(before, 'price', expected), {
    source: 1,
    expect: { otherwise: 'warn', fields: { url: {}, price: { min: 0, ...expected } } },
  });
  assert.deepEqual(withExpectation({}, 'price', expected), { expect: { fields: { price: expected } } });
  assert.equal(
    yamlOf('price', expected),
    'expect:\n  fields:\n    "price": { "type": "number", "filled": "98%" }\n',
  );
});
