/** Expectations that are made from profiles. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expectationOf, merged, yamlOf } from './quality.ts';

test('the expectation of a field is merged into a definition, or written as YAML', () => {
  const expect = { records: { min: 1 }, fields: { price: { type: 'number', filled: '98%' } } };
  const part = expectationOf(expect, 'price') ?? assert.fail();
  assert.equal(expectationOf(expect, 'constructor'), undefined);
  assert.deepEqual(merged({ source: { type: 'push' }, expect: { fields: { url: { type: 'url' } } } }, part), {
    source: { type: 'push' },
    expect: { fields: { url: { type: 'url' }, price: { type: 'number', filled: '98%' } } },
  });
  assert.equal(yamlOf(part), 'expect:\n  fields:\n    price:\n      type: "number"\n      filled: "98%"\n');
});
