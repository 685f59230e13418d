/** What every driver must do with records: staging, sweeping, publishing, reading. */
import assert from 'node:assert/strict';
import type { Held } from '../../model/job.ts';
import type { Store } from '../store.ts';
import {
  allEvents,
  caseWith,
  claimOne,
  failAttempt,
  makeJob,
  makeRunning,
  makeWorkflow,
  type Open,
  PUBLIC_URL,
  people,
  publishRun,
  readVersion,
} from './setup.ts';

const NO_GUARDS = { minRecords: 0, maxDropPercent: null };
const ADA = { id: 'a', name: 'Ada' };
const BOB = { id: 'b', name: 'Bob' };

export function testRecords(open: Open): void {
  const it = caseWith(open);

  it('has an empty version 0 before the first published run', async ({ store }) => {
    const at = await makeWorkflow(store);
    assert.deepEqual(await store.records.version(at), { number: 0, oldest: 0, total: 0, largest: 0 });
    assert.deepEqual(await readVersion(store, { ...at, version: 0 }), []);
    assert.equal(await store.records.version({ ...at, workflowId: 'unknown' }), undefined);
    assert.deepEqual(await readVersion(store, { ...at, workflowId: 'unknown', version: 1 }), []);
  });

  it('shows nothing of a run until it is published, and then all of it', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    await store.records.stage({ held, mode: 'replace', records: people({ b: 'Bert', c: 'Cid' }) });
    await store.records.remove({ held, seqs: [1] });
    assert.equal((await store.records.version(at))?.number, 1);
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [ADA, BOB]);
    const published = await store.records.publish({ held, guards: NO_GUARDS, state: undefined });
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

  it('keeps the order of first appearance over versions, and puts a returning id last', async ({ store }) => {
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

  it('takes the last body and the first position of an id that comes several times', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    const stage = (names: [string, string][]) =>
      store.records.stage({
        held,
        mode: 'replace',
        records: names.flatMap(([id, name]) => people({ [id]: name })),
      });
    const first = await stage([
      ['a', 'one'],
      ['b', 'Bob'],
      ['a', 'two'],
    ]);
    assert.deepEqual(first, { seqs: [1, 2, 1], duplicates: 1 });
    assert.deepEqual(await stage([['a', 'Ada']]), { seqs: [1], duplicates: 1 });
    const { records } = await publishedOf(store, held);
    assert.deepEqual(records, { total: 2, added: 2, changed: 0, removed: 0 });
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [ADA, BOB]);
  });

  it('counts no change for an id that changes and changes back within a run', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    for (const name of ['Anna', 'Ada', 'Anne', 'Ada']) {
      await store.records.stage({ held, mode: 'upsert', records: people({ a: name }) });
    }
    assert.deepEqual(await publishedOf(store, held), {
      outcome: 'unchanged',
      version: 1,
      records: { total: 2, added: 0, changed: 0, removed: 0 },
    });
    const job = await store.jobs.get({ teamId: at.teamId, id: held.jobId });
    assert.deepEqual([job?.state, job?.version], ['finished', 1]);
  });

  it('leaves an existing id alone in append and counts it', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const held = await makeRunning(store, at);
    const staged = await store.records.stage({
      held,
      mode: 'append',
      records: [...people({ a: 'Eve', b: 'Bob' }), ...people({ b: 'Bert' })],
    });
    assert.deepEqual(staged, { seqs: [1, 2, 2], duplicates: 2 });
    await publishedOf(store, held);
    assert.deepEqual(await readVersion(store, { ...at, version: 2 }), [ADA, BOB]);
  });

  it('forgets a record that this run wrote and then removed', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const held = await makeRunning(store, at);
    await store.records.stage({ held, mode: 'replace', records: people({ a: 'Anna', b: 'Bob' }) });
    await store.records.remove({ held, seqs: [1, 2, 99] });
    const { records } = await publishedOf(store, held);
    assert.deepEqual(records, { total: 0, added: 0, changed: 0, removed: 1 });
    assert.deepEqual(await readVersion(store, { ...at, version: 2 }), []);
  });

  it('sweeps what an attempt left, a few rows at a time', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid' });
    const lost = await makeRunning(store, at);
    const names = { a: 'x', b: 'y', d: 'D', e: 'E' };
    await store.records.stage({ held: lost, mode: 'replace', records: people(names) });
    await store.records.remove({ held: lost, seqs: [3] });
    await failAttempt(store, lost);
    assert.deepEqual((await readVersion(store, { ...at, version: 1 })).length, 3);
    const held = await makeRunning(store, at);
    let calls = 1;
    while (!(await store.records.sweep({ held, limit: 2 })).done) calls++;
    assert.equal(calls, 4);
    assert.deepEqual(await store.records.currentSeqs({ held, afterSeq: 0, limit: 10 }), [1, 2, 3]);
    assert.equal((await publishedOf(store, held)).outcome, 'unchanged');
    assert.deepEqual((await readVersion(store, { ...at, version: 1 })).length, 3);
  });

  it('lists current records after a seq, those of this run included', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    await store.records.stage({ held, mode: 'replace', records: people({ b: 'Bert', c: 'Cid', d: 'Dan' }) });
    const after = (afterSeq: number, limit: number) => store.records.currentSeqs({ held, afterSeq, limit });
    assert.deepEqual(await after(0, 3), [1, 2, 3]);
    assert.deepEqual(await after(3, 3), [4]);
    assert.deepEqual(await after(4, 3), []);
  });

  it('refuses a batch that is too large', async ({ store }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    const records = Array.from({ length: 501 }, (_, n) => ({ id: String(n), body: '{}' }));
    await assert.rejects(store.records.stage({ held, mode: 'replace', records }), /500 records/);
    await store.records.stage({ held, mode: 'replace', records: records.slice(1) });
  });

  it('guards the least number of records', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const held = await makeRunning(store, at);
    await store.records.remove({ held, seqs: [1] });
    const guards = { minRecords: 1, maxDropPercent: null };
    const published = await store.records.publish({ held, guards, state: { later: true } });
    assert.equal(published.outcome, 'guarded');
    assert.match((published as { error: string }).error, /minRecords .* 0 records are fewer than the 1 /);
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: held.jobId }))?.state, 'running');
    assert.equal((await store.records.version(at))?.number, 1);
    assert.equal(
      (await store.records.publish({ held, guards: NO_GUARDS, state: undefined })).outcome,
      'published',
    );
  });

  it('guards the fall of the total in per cent', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid', d: 'Dan' });
    const held = await makeRunning(store, at);
    await store.records.remove({ held, seqs: [1, 2, 3] });
    const publish = (maxDropPercent: number) =>
      store.records.publish({ held, guards: { minRecords: 0, maxDropPercent }, state: undefined });
    const refused = await publish(74);
    assert.match(
      (refused as { error: string }).error,
      /maxDropPercent .* from 4 to 1, by 75 %, .* allows 74 %/,
    );
    assert.equal((await publish(75)).outcome, 'published');
  });

  it('hands the state of a published run to the next one', async ({ store }) => {
    const at = await makeWorkflow(store);
    const run = async (state: unknown, end: 'publish' | 'fail') => {
      await makeJob(store, at);
      const [claimed] = await store.jobs.claim({ nodeId: 'n', limit: 1, leaseMs: 1_000 });
      const job = claimed?.job as { id: string; attempt: number };
      const held = { teamId: at.teamId, jobId: job.id, attempt: job.attempt };
      if (end === 'publish') await store.records.publish({ held, guards: NO_GUARDS, state });
      else await failAttempt(store, held);
      return claimed?.state;
    };
    assert.equal(await run({ since: 5 }, 'publish'), null);
    assert.deepEqual(await run(undefined, 'publish'), { since: 5 });
    assert.deepEqual(await run(undefined, 'fail'), { since: 5 });
    assert.deepEqual(await run(null, 'publish'), { since: 5 });
    assert.equal(await run(undefined, 'publish'), null);
  });

  it('bounds the longest record in bytes', async ({ store }) => {
    const at = await makeWorkflow(store);
    const body = (name: string) => Buffer.byteLength(JSON.stringify({ id: 'a', name }));
    await publishRun(store, at, { a: 'é€😀' });
    assert.equal((await store.records.version(at))?.largest, body('é€😀'));
    await publishRun(store, at, { a: 'x' });
    assert.equal((await store.records.version(at))?.largest, body('é€😀'));

    const lost = await makeRunning(store, at);
    const long = people({ a: 'y'.repeat(5_000) });
    await store.records.stage({ held: lost, mode: 'replace', records: long });
    await store.jobs.release({ held: [lost] });
    const held = await claimOne(store);
    while (!(await store.records.sweep({ held, limit: 100 })).done);
    await store.records.stage({ held, mode: 'replace', records: people({ b: 'z'.repeat(50) }) });
    await publishedOf(store, held);
    assert.equal((await store.records.version(at))?.largest, body('z'.repeat(50)));
  });

  it('tells the life of a job in order, with what has changed', async ({ store }) => {
    const at = await makeWorkflow(store, { id: 'Größe 1' });
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid' });
    await publishRun(store, at, { a: 'Anna', c: 'Cid', d: 'Dan' });
    await publishRun(store, at, { a: 'Anna', c: 'Cid', d: 'Dan' });
    const events = await allEvents(store, at.teamId);
    const names = ['workflow_queued', 'workflow_started', 'workflow_data_change', 'workflow_finished'];
    assert.deepEqual(
      events.map((event) => event.type),
      [...names, ...names, ...names.filter((name) => name !== 'workflow_data_change')],
    );
    const [change, finished] = events.slice(6, 8);
    const published = {
      version: 2,
      records: { total: 3, added: 1, changed: 1, removed: 1 },
      dataUrl: `${PUBLIC_URL}/v1/workflows/Gr%C3%B6%C3%9Fe%201/data`,
    };
    const data: Record<string, unknown> = change?.parsed.data ?? {};
    const { state, finishedAt } = data;
    assert.deepEqual(data, {
      ...finished?.parsed.data,
      ...published,
      previousVersion: 1,
      differences: [
        { type: 'changed', id: 'a', fields: [{ key: 'name', value: 'Anna', previousValue: 'Ada' }] },
        {
          type: 'added',
          id: 'd',
          fields: [
            { key: 'id', value: 'd' },
            { key: 'name', value: 'Dan' },
          ],
        },
        {
          type: 'removed',
          id: 'b',
          fields: [
            { key: 'id', previousValue: 'b' },
            { key: 'name', previousValue: 'Bob' },
          ],
        },
      ],
      truncated: false,
    });
    assert.equal(state, 'finished');
    assert.equal(finished?.parsed.finishedAt, finishedAt);
    assert.deepEqual(events.at(-1)?.parsed.data.records, { total: 3, added: 0, changed: 0, removed: 0 });
  });

  it('keeps the body of a large change under 20 kB and says that it is cut', async ({ store }) => {
    const at = await makeWorkflow(store);
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`p${n}`, 'x']));
    await publishRun(store, at, many);
    await publishRun(store, at, { big: 'x'.repeat(100_000) });
    const changes = (await allEvents(store, at.teamId)).filter(
      (event) => event.type === 'workflow_data_change',
    );
    const [first, second] = changes.map(
      (event) => event.parsed.data as { differences: unknown[]; truncated: boolean },
    );
    assert.deepEqual([first?.differences.length, first?.truncated], [100, true]);
    assert.deepEqual([second?.differences.length, second?.truncated], [0, true]);
    for (const event of changes) assert.ok(Buffer.byteLength(event.body) < 20_000);
  });

  it('keeps workflows of different teams apart', async ({ store }) => {
    const a = await makeWorkflow(store, { team: 'a' });
    const b = await makeWorkflow(store, { team: 'b' });
    await publishRun(store, a, { a: 'Ada' });
    await publishRun(store, b, { b: 'Bob' });
    assert.deepEqual(await readVersion(store, { ...a, version: 1 }), [ADA]);
    assert.deepEqual(await readVersion(store, { ...b, version: 1 }), [BOB]);
  });
}

async function publishedOf(store: Store, held: Held) {
  const published = await store.records.publish({ held, guards: NO_GUARDS, state: undefined });
  assert.notEqual(published.outcome, 'guarded');
  return published as Exclude<typeof published, { outcome: 'guarded' }>;
}
