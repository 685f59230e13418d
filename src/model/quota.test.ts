/** Quotas as people write them, and what they refuse. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseQuota, recordsMistake } from './quota.ts';

test('a quota is a whole number, off or default', () => {
  assert.equal(parseQuota('0'), 0);
  assert.equal(parseQuota('1000000'), 1_000_000);
  assert.equal(parseQuota('off'), null);
  assert.equal(parseQuota('default'), undefined);
  for (const text of ['', '-1', '1.5', '1k', 'none', '1e6']) assert.equal(parseQuota(text), 'mistake', text);
});

test('a team that has too many records may have fewer or as many, and never more', () => {
  const beyond = { most: 5, others: 10 };
  assert.equal(recordsMistake({ ...beyond, before: 8, after: 7 }), undefined);
  assert.equal(recordsMistake({ ...beyond, before: 8, after: 8 }), undefined);
  assert.match(recordsMistake({ ...beyond, before: 8, after: 9 }) ?? '', /may have 5 records, .* have 19/);
  assert.equal(recordsMistake({ most: 5, others: 3, before: 0, after: 2 }), undefined);
  assert.equal(recordsMistake({ most: null, others: 3, before: 0, after: 1_000 }), undefined);
});
