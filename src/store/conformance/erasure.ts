/** Erasing a person: finding and removing records, and suppressing new ones. */
import assert from 'node:assert/strict';
import { FencedError } from '../../model/error.ts';
import { insertsOf } from '../../model/planned-writes.ts';
import type { ChangesCursor } from '../operations/history/changes.ts';
import type { Store } from '../store.ts';
import {
  beginPush,
  CLAIM,
  caseWith,
  makeRunning,
  makeWorkflow,
  type Open,
  publish,
  publishRun,
  readVersion,
} from './setup.ts';

export function testErasure(open: Open): void {
  const it = caseWith(open);

  it('finds rows of every version by their text and by their id', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    await publishRun(store, at, { a: 'Countess', b: 'Bob' });
    await publishRun(store, at, { b: 'Bob' });
    const found = async (needles: string[], ids: string[]) => {
      const { rows } = await store.erasure.scanRecords({ ...at, needles, ids, after: null });
      return rows.map(({ id, addedIn, removedIn }) => `${id} ${addedIn}-${removedIn ?? ''}`);
    };
    assert.deepEqual(await found(['ada'], []), ['a 1-2']);
    assert.deepEqual(await found(['zzz'], ['a']), ['a 1-2', 'a 2-3']);
    assert.deepEqual(await found([], []), []);
    assert.deepEqual(await found(['bob', 'countess'], []), ['a 2-3', 'b 1-']);
  });

  it('keeps it unknown what an earlier version has replaced', async ({ store, statement }) => {
    const at = await makeWorkflow(store);
    for (const name of ['Ada', 'Countess', 'Ada King']) await publishRun(store, at, { a: name, b: 'Bob' });
    await statement('update version set replaced_bytes = null where number = 2');
    const { rows } = await store.erasure.scanRecords({ ...at, needles: [], ids: ['a'], after: null });
    await store.erasure.remove({ ...at, seqs: rows.slice(0, 1).map(({ seq }) => seq) });
    const bytes = await statement('select replaced_bytes as bytes from version order by number');
    assert.deepEqual(
      bytes.map(({ bytes: one }) => (one === null ? null : Number(one))),
      [0, null, 0],
    );
  });

  it('ends a search, and continues from a cursor', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const first = await store.erasure.scanRecords({ ...at, needles: ['ada'], ids: [], after: null });
    assert.equal(first.rows.length, 1);
    const second = await store.erasure.scanRecords({ ...at, needles: ['ada'], ids: [], after: first.next });
    assert.deepEqual(second, { rows: [], next: null });
  });

  it('removes a record from every version as if it had never existed', async ({ store, inspect }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cy' });
    await publishRun(store, at, { a: 'Ada King', b: 'Bob', d: 'Di' });
    await publishRun(store, at, { b: 'Bobby', d: 'Di' });
    await publishRun(store, at, { a: 'Ada again', b: 'Bobby', d: 'Di' });
    const before = await store.records.version(at);
    const { rows } = await store.erasure.scanRecords({ ...at, needles: [], ids: ['a'], after: null });
    const seqs = [...new Set(rows.map(({ seq }) => seq))];
    assert.equal(seqs.length, 2, 'an id that returns is a new record');
    assert.equal(await store.erasure.remove({ ...at, seqs }), 3);
    assert.equal(await store.erasure.remove({ ...at, seqs }), 0, 'removing twice finds nothing');

    const counts: unknown[] = [];
    for (const { number, records } of await store.records.versions({ ...at, limit: 10 })) {
      const read = await readVersion(store, { ...at, version: number });
      assert.equal(read.length, records.total, `version ${number}`);
      assert.ok(!JSON.stringify(read).includes('Ada'));
      counts.unshift(records);
    }
    assert.deepEqual(counts, [
      { total: 2, added: 2, changed: 0, removed: 0 },
      { total: 2, added: 1, changed: 0, removed: 1 },
      { total: 2, added: 0, changed: 1, removed: 0 },
      { total: 2, added: 0, changed: 0, removed: 0 },
    ]);
    const { counted, found } = await inspect(at);
    assert.deepEqual(counted, found);
    const after = await store.records.version(at);
    assert.equal(after?.number, before?.number);
    assert.equal(after?.total, 2);
    assert.equal(after?.erasures, (before?.erasures ?? 0) + 1);
    const changed: string[] = [];
    let cursor: ChangesCursor | null = null;
    do {
      const page: Awaited<ReturnType<Store['records']['changes']>> = await store.records.changes({
        ...at,
        since: 1,
        until: 4,
        after: cursor,
        limit: 100,
      });
      changed.push(...page.rows.map(({ id }) => id));
      cursor = page.next;
    } while (cursor !== null);
    assert.deepEqual(changed, ['d', 'b', 'c']);
  });

  it('makes a running job start over, and keeps the counts of the next version correct', async ({
    store,
    inspect,
  }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    const { rows } = await store.records.compare({ held, ids: ['a', 'e'] });
    const [ada] = rows;
    assert.ok(ada);
    const { seqs } = await store.records.stage({
      held,
      writes: {
        inserts: insertsOf([{ id: 'e', body: '{"id":"e","name":"Eve"}' }]),
        changes: [
          {
            kind: 'supersede',
            id: 'a',
            seq: ada.seq,
            addedIn: ada.addedIn,
            body: '{"id":"a","name":"Changed"}',
          },
        ],
      },
    });
    assert.equal(await store.erasure.remove({ ...at, seqs }), 3);
    await assert.rejects(store.records.stage({ held, writes: { inserts: null, changes: [] } }), FencedError);

    const job = await store.jobs.get({ teamId: at.teamId, id: held.jobId });
    assert.equal(job?.state, 'retrying');
    const [claimed] = await store.jobs.claim(CLAIM);
    assert.ok(claimed);
    const again = { teamId: at.teamId, jobId: held.jobId, attempt: claimed.job.attempt };
    while (!(await store.records.sweep({ held: again, limit: 100 })).done);
    const published = await publish(store, again, { mode: 'replace' });
    assert.equal(published.outcome, 'unchanged');
    const { counted, found } = await inspect(at);
    assert.deepEqual(counted, found);
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [{ id: 'b', name: 'Bob' }]);
  });

  it('suppresses people by team and workflow, once, and makes running jobs start over', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { team: 'other' });
    const held = await makeRunning(store, at);
    const entries = [
      { workflowId: '', kind: 'email' as const, hash: 'h1' },
      { workflowId: 'people', kind: 'id' as const, hash: 'h2' },
      { workflowId: 'elsewhere', kind: 'id' as const, hash: 'h3' },
    ];
    await store.erasure.suppress({ teamId: at.teamId, entries });
    await store.erasure.suppress({ teamId: at.teamId, entries });
    const suppressed = (of: typeof at) => store.erasure.suppressed({ ...of, limit: 100 });
    assert.deepEqual(await suppressed(at), [entries[1]]);
    assert.deepEqual(await suppressed({ ...at, workflowId: '' }), [entries[0]]);
    assert.deepEqual(await suppressed({ ...other, workflowId: '' }), []);
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: held.jobId }))?.state, 'retrying');
  });

  it('fails a running push, whose sender must send the records again', async ({ store }) => {
    const at = await makeWorkflow(store, { source: { type: 'push' } });
    const { jobId } = await beginPush(store, at);
    const entries = [{ workflowId: '', kind: 'email' as const, hash: 'h1' }];
    await store.erasure.suppress({ teamId: at.teamId, entries });
    const job = await store.jobs.get({ teamId: at.teamId, id: jobId });
    assert.deepEqual([job?.state, job?.reason], ['failed', 'lost']);
  });
}
