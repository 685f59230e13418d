/** What a run writes for each record, and which field names a version stores. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ComparedRecord, insertsOf, mergeFields, planWrites } from './planned-writes.ts';
import type { Mode } from './workflow.ts';

const row = (id: string, seq: number, changes: Partial<ComparedRecord> = {}): ComparedRecord => ({
  id,
  seq,
  addedIn: 1,
  body: `old ${id}`,
  published: null,
  ...changes,
});
const ROWS = [
  row('same', 1),
  row('other', 2),
  row('mine', 3, { addedIn: 2, body: 'mine', published: 'old mine' }),
  row('fresh', 4, { addedIn: 2 }),
];
const plan = (mode: Mode, records: Record<string, string>) =>
  planWrites({
    version: 2,
    mode,
    rows: ROWS.filter(({ id }) => id in records),
    records: new Map(Object.entries(records)),
  });

test('writes new and changed records and keeps the rest', () => {
  assert.deepEqual(plan('upsert', { new: 'n', same: 'old same', other: 'o', fresh: 'f' }), {
    writes: {
      inserts: { ids: '["new"]', records: '[n]', count: 1, bytes: 1, largest: 1 },
      changes: [
        { kind: 'supersede', id: 'other', seq: 2, addedIn: 1, body: 'o' },
        { kind: 'rewrite', seq: 4, body: 'f' },
      ],
    },
    kept: [1],
  });
});

test('restores a row that the run has closed if the record reverts to it', () => {
  const changes = (records: Record<string, string>) => plan('replace', records).writes.changes;
  assert.deepEqual(changes({ mine: 'old mine' }), [{ kind: 'restore', seq: 3 }]);
  assert.deepEqual(plan('replace', { mine: 'mine' }), { writes: { inserts: null, changes: [] }, kept: [3] });
  assert.deepEqual(changes({ mine: 'm' }), [{ kind: 'rewrite', seq: 3, body: 'm' }]);
});

test('refuses rows that are not in the order of the records', () => {
  const records = new Map([
    ['a', 'old a'],
    ['b', 'old b'],
  ]);
  const rows = [row('b', 2), row('a', 1)];
  assert.throws(() => planWrites({ version: 2, mode: 'replace', rows, records }), /not in the order/);
});

test('never changes an existing record in the mode append', () => {
  const { writes, kept } = plan('append', { other: 'o', fresh: 'f', new: 'n' });
  assert.deepEqual(writes, { inserts: insertsOf([{ id: 'new', body: 'n' }]), changes: [] });
  assert.deepEqual(kept, [2, 4]);
});

test('stores field names in order of first appearance, up to the limits', () => {
  assert.deepEqual(mergeFields(['id', 'b'], ['a', 'id', 'c', 'a']), ['id', 'b', 'a', 'c']);
  const many = Array.from({ length: 1_200 }, (_, n) => `f${n}`);
  assert.equal(mergeFields(many, []).length, 1_000);
  assert.deepEqual(mergeFields(['a'], ['x'.repeat(70_000), 'b']), ['a']);
});
