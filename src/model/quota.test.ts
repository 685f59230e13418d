/** Parsing and checking of quotas. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseQuota, publishMistake } from './quota.ts';

test('a quota is a whole number, off or default', () => {
  assert.equal(parseQuota('0'), 0);
  assert.equal(parseQuota('1000000'), 1_000_000);
  assert.equal(parseQuota('off'), null);
  assert.equal(parseQuota('default'), undefined);
  for (const text of ['', '-1', '1.5', '1k', 'none', '1e6']) assert.equal(parseQuota(text), 'mistake', text);
});

test('a team that exceeds its quota may keep or reduce its records, but not add any', () => {
  const records = { quota: 'records', most: 5 } as const;
  const beyond = { ...records, others: 10 };
  assert.equal(publishMistake({ ...beyond, before: 8, after: 7 }), undefined);
  assert.equal(publishMistake({ ...beyond, before: 8, after: 8 }), undefined);
  assert.match(publishMistake({ ...beyond, before: 8, after: 9 }) ?? '', /would have 19, .* of 5 records/);
  assert.equal(publishMistake({ ...records, others: 3, before: 0, after: 2 }), undefined);
  assert.equal(publishMistake({ ...records, most: null, others: 3, before: 0, after: 1_000 }), undefined);
});

test('the error for stored bytes names the quota and the resulting size', () => {
  const input = {
    quota: 'storedBytes',
    most: 2_000_000,
    others: 1_500_000,
    before: 0,
    after: 500_001,
  } as const;
  assert.match(
    publishMistake(input) ?? '',
    /would have 2000001, .* quota `storedBytes` of 2000000 bytes of records \(2 MB\)/,
  );
  assert.equal(publishMistake({ ...input, after: 500_000 }), undefined);
});
