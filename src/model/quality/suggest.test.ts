/** Expectations that are made of what runs looked like. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { suggestExpect } from './suggest.ts';

test('a run of one record does not suggest to allow runs without records', () => {
  const one = { mode: 'replace', records: 1, duplicates: 0, fields: [], omitted: 0 } as const;
  assert.deepEqual(suggestExpect([{ ...one, fields: [] }]), { records: { min: 1, max: 2, drop: '30%' } });
});
