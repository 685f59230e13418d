/** Records: the content of a version, and its order. */
import assert from 'node:assert/strict';
import type { AttemptLease } from '../../model/job.ts';
import { insertsOf } from '../../model/planned-writes.ts';
import type { Store } from '../store.ts';
import {
  caseWith,
  claimOne,
  failAttempt,
  makeRunning,
  makeWorkflow,
  type Open,
  people,
  publish,
  publishRun,
  readChanges,
  readVersion,
  stageRecords,
} from './setup.ts';

const EMPTY = {
  number: 0,
  oldest: 0,
  versions: 1,
  total: 0,
  largest: 0,
  bytes: null,
  erasures: 0,
  fields: [],
};
const ADA = { id: 'a', name: 'Ada' };
const BOB = { id: 'b', name: 'Bob' };

export function testRecords(open: Open): void {
  const it = caseWith(open);

  it('has an empty version 0 before the first published run', async ({ store }) => {
    const at = await makeWorkflow(store);
    assert.deepEqual(await store.records.version(at), EMPTY);
    assert.deepEqual(await store.records.version({ ...at, number: 0 }), EMPTY);
    assert.equal(await store.records.version({ ...at, number: 1 }), undefined);
    assert.deepEqual(await store.records.versions({ ...at, limit: 10 }), []);
    assert.deepEqual(await readVersion(store, { ...at, version: 0 }), []);
    assert.equal(await store.records.version({ ...at, workflowId: 'unknown' }), undefined);
    assert.deepEqual(await readVersion(store, { ...at, workflowId: 'unknown', version: 1 }), []);
  });

  it('shows nothing of a run until it is published, and then all of it', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'replace', people({ b: 'Bert', c: 'Cid' }));
    await store.records.remove({ held, seqs: [1] });
    assert.equal((await store.records.version(at))?.number, 1);
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [ADA, BOB]);
    const published = await publish(store, held);
    assert.deepEqual(published, {
      outcome: 'published',
      version: 2,
      records: { total: 2, added: 1, changed: 1, removed: 1 },
    });
    assert.equal((await store.records.version(at))?.number, 2);
    assert.deepEqual(await readVersion(store, { ...at, version: 2 }), [
      { id: 'b', name: 'Bert' },
      { id: 'c', name: 'Cid' },
    ]);
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [ADA, BOB]);
  });

  it('keeps the order of first appearance over versions, and lists a returning id last', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid' });
    await publishRun(store, at, { c: 'Cid', a: 'Anna' });
    await publishRun(store, at, { b: 'Bob', c: 'Cid', a: 'Anna' });
    const records = await readVersion(store, { ...at, version: 3 });
    assert.deepEqual(
      records.map((record) => (record as { id: string }).id),
      ['a', 'c', 'b'],
    );
  });

  it('keeps the last body and the first position of an id that occurs several times', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    const stage = (names: [string, string][]) =>
      stageRecords(
        store,
        held,
        'replace',
        names.flatMap(([id, name]) => people({ [id]: name })),
      );
    assert.deepEqual(
      await stage([
        ['a', 'one'],
        ['b', 'Bob'],
        ['a', 'two'],
      ]),
      [1, 2],
    );
    assert.deepEqual(await stage([['a', 'Ada']]), [1]);
    const { records } = await publishedOf(store, held);
    assert.deepEqual(records, { total: 2, added: 2, changed: 0, removed: 0 });
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [ADA, BOB]);
  });

  it('counts no change for an id that changes and changes back within a run', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    for (const name of ['Anna', 'Ada', 'Anne', 'Ada']) {
      await stageRecords(store, held, 'upsert', people({ a: name }));
    }
    assert.deepEqual(await publishedOf(store, held), {
      outcome: 'unchanged',
      version: 1,
      records: { total: 2, added: 0, changed: 0, removed: 0 },
    });
    const job = await store.jobs.get({ teamId: at.teamId, id: held.jobId });
    assert.deepEqual([job?.state, job?.version], ['finished', 1]);
  });

  it('does not change an existing id with append', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const held = await makeRunning(store, at);
    const staged = await stageRecords(store, held, 'append', people({ a: 'Eve', b: 'Bob' }));
    assert.deepEqual(staged, [1, 2]);
    assert.deepEqual(await stageRecords(store, held, 'append', people({ b: 'Bert' })), [2]);
    await publishedOf(store, held);
    assert.deepEqual(await readVersion(store, { ...at, version: 2 }), [ADA, BOB]);
  });

  it('removes only records that an earlier run has written', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'replace', people({ b: 'Bert', c: 'Cid' }));
    await store.records.remove({ held, seqs: [1, 2, 3, 99] });
    await store.records.remove({ held, seqs: [1] });
    const { records } = await publishedOf(store, held);
    assert.deepEqual(records, { total: 2, added: 1, changed: 1, removed: 1 });
  });

  it('undoes the writes of a lost attempt, a few rows at a time', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid' });
    const lost = await makeRunning(store, at);
    const names = { a: 'x', b: 'y', d: 'D', e: 'E' };
    await stageRecords(store, lost, 'replace', people(names));
    await store.records.remove({ held: lost, seqs: [3] });
    await failAttempt(store, lost);
    assert.deepEqual((await readVersion(store, { ...at, version: 1 })).length, 3);
    const held = await makeRunning(store, at);
    let calls = 1;
    while (!(await store.records.sweep({ held, limit: 2 })).done) calls++;
    assert.equal(calls, 4);
    const current = await store.records.currentSeqs({ held, afterSeq: 0, rows: 10 });
    assert.deepEqual(current.seqs, [1, 2, 3]);
    assert.equal((await publishedOf(store, held)).outcome, 'unchanged');
    assert.deepEqual((await readVersion(store, { ...at, version: 1 })).length, 3);
  });

  it('lists current records after a seq, including those of this run', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'replace', people({ b: 'Bert', c: 'Cid', d: 'Dan' }));
    const after = (afterSeq: number, rows: number) => store.records.currentSeqs({ held, afterSeq, rows });
    assert.deepEqual(await after(0, 3), { seqs: [1, 2, 3], lastSeq: 3, done: false });
    assert.deepEqual((await after(2, 1)).seqs, [3]);
    const end = await after(3, 3);
    assert.deepEqual([end.seqs, end.done], [[4], true]);
    assert.deepEqual((await after(4, 3)).seqs, []);
  });

  it('counts current records, including those of this run', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid' });
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'replace', people({ b: 'Bert', c: 'Cid', d: 'Dan', e: 'Eve' }));
    assert.deepEqual(await store.records.currentTotal({ held }), { total: 5 });
    await store.records.remove({ held, seqs: [1] });
    assert.deepEqual(await store.records.currentTotal({ held }), { total: 4 });
  });

  it('refuses a batch that is too large', async ({ store }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    const records = Array.from({ length: 2_001 }, (_, n) => ({ id: String(n), body: `{"id":"${n}"}` }));
    const writes = (from: number) => ({
      inserts: insertsOf(records.slice(from)),
      changes: [],
    });
    const ids = records.map(({ id }) => id);
    await assert.rejects(store.records.compare({ held, ids }), /2000 records/);
    await assert.rejects(store.records.stage({ held, writes: writes(0) }), /2000 records/);
    await assert.rejects(store.records.remove({ held, seqs: ids.map(Number) }), /2000 records/);
    await store.records.stage({ held, writes: writes(1) });
  });

  it('stores the length of the longest record in bytes', async ({ store }) => {
    const at = await makeWorkflow(store);
    const body = (name: string) => Buffer.byteLength(JSON.stringify({ id: 'a', name }));
    await publishRun(store, at, { a: 'é€😀' });
    assert.equal((await store.records.version(at))?.largest, body('é€😀'));
    await publishRun(store, at, { a: 'x' });
    assert.equal((await store.records.version(at))?.largest, body('é€😀'));

    const lost = await makeRunning(store, at);
    const long = people({ a: 'y'.repeat(5_000) });
    await stageRecords(store, lost, 'replace', long);
    await store.jobs.release({ held: [lost] });
    const held = await claimOne(store);
    while (!(await store.records.sweep({ held, limit: 100 })).done);
    await stageRecords(store, held, 'replace', people({ b: 'z'.repeat(50) }));
    await publishedOf(store, held);
    assert.equal((await store.records.version(at))?.largest, body('z'.repeat(50)));
  });

  it('distinguishes the longest ids, even by their last character', async ({ store }) => {
    const at = await makeWorkflow(store);
    // The longest id allowed, which no database can compress.
    const long = Array.from({ length: 1_023 }, (_, n) =>
      String.fromCharCode(0x4e00 + ((n * 7_919) % 20_000)),
    );
    const ids = ['x', 'y', 'z'].map((end) => long.join('') + end);
    await publishRun(store, at, Object.fromEntries(ids.map((id, n) => [id, `${n}`])));
    await publishRun(store, at, Object.fromEntries(ids.slice(1).map((id) => [id, '2'])));
    const changes = await readChanges(store, { ...at, since: 1, until: 2 }, 10);
    assert.deepEqual(
      changes.map(({ id, after }) => [id, after === null]),
      [
        [ids[1], false],
        [ids[0], true],
      ],
    );
  });

  it('separates workflows of different teams', async ({ store }) => {
    const a = await makeWorkflow(store, { team: 'a' });
    const b = await makeWorkflow(store, { team: 'b' });
    await publishRun(store, a, { a: 'Ada' });
    await publishRun(store, b, { b: 'Bob' });
    assert.deepEqual(await readVersion(store, { ...a, version: 1 }), [ADA]);
    assert.deepEqual(await readVersion(store, { ...b, version: 1 }), [BOB]);
  });
}

async function publishedOf(store: Store, held: AttemptLease) {
  const published = await publish(store, held);
  assert.match(published.outcome, /^(published|unchanged)$/);
  return published as Exclude<typeof published, { outcome: 'guarded' | 'canceled' }>;
}
