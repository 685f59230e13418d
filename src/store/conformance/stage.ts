/** Comparing and staging: exactly the decided writes are made, or none. */
import assert from 'node:assert/strict';
import { insertsOf, type StagedChange, type StagedWrites } from '../../model/planned-writes.ts';
import {
  caseWith,
  claimOne,
  makeRunning,
  makeWorkflow,
  type Open,
  people,
  publish,
  publishRun,
  readVersion,
  stageRecords,
} from './setup.ts';

const LONG = 'x'.repeat(1_000_000);

export function testStaging(open: Open): void {
  const it = caseWith(open);

  it('compares with current rows and with rows that the run has closed', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid' });
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'upsert', people({ b: 'Bert', d: 'Dan' }));
    const body = (id: string, name: string) => JSON.stringify({ id, name });
    assert.deepEqual(await store.records.compare({ held, ids: ['d', 'a', 'b', 'x'] }), {
      version: 2,
      rows: [
        { id: 'd', seq: 4, addedIn: 2, body: body('d', 'Dan'), published: null },
        { id: 'a', seq: 1, addedIn: 1, body: body('a', 'Ada'), published: null },
        { id: 'b', seq: 2, addedIn: 2, body: body('b', 'Bert'), published: body('b', 'Bob') },
      ],
    });
  });

  it('keeps the published text of a record that is written differently', async ({ store }) => {
    const at = await makeWorkflow(store);
    const digits = '"digits":"1234567890123456"';
    const publishOf = async (body: string) => {
      const held = await makeRunning(store, at);
      await stageRecords(store, held, 'replace', [{ id: 'a', body }]);
      return publish(store, held);
    };
    // An earlier version of Flowhook stored `1.0` unchanged if the record also contained many digits in a row.
    const first = `{"id":"a",${digits},"n":1.0,"in":{"x":1,"y":[{"p":1,"q":2}]}}`;
    assert.equal((await publishOf(first)).outcome, 'published');
    const other = `{"in":{"y":[{"q":2,"p":1}],"x":1},"n":1,"id":"a",${digits}}`;
    assert.equal((await publishOf(other)).outcome, 'unchanged');
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [JSON.parse(first)]);
    const { rows } = await store.records.compare({ held: await makeRunning(store, at), ids: ['a'] });
    assert.equal(rows[0]?.body, first);
  });

  it('returns no body that is much longer than the incoming record', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: `é${LONG}`, b: `Bob${LONG}` });
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'upsert', people({ b: 'B' }));
    const bytes = (name: string) => Buffer.byteLength(JSON.stringify({ id: 'a', name }));
    const compared = async (a: string, b: string) => {
      const sizes = [bytes(a), bytes(b)];
      const { rows } = await store.records.compare({ held, ids: ['a', 'b'], sizes });
      return rows.map((row) => [row.body.length > 0, (row.published ?? '').length > 0]);
    };
    assert.deepEqual(await compared(LONG, 'x'), [
      [true, false],
      [true, false],
    ]);
    assert.deepEqual(await compared('x', LONG), [
      [false, false],
      [true, true],
    ]);
  });

  it('changes nothing when a batch is staged twice', async ({ store, inspect }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const { bytes } = (await inspect(at)).found;
    const held = await makeRunning(store, at);
    const batches: StagedWrites[] = [
      {
        inserts: insertsOf([{ id: 'c', body: '{"id":"c"}' }]),
        changes: [
          { kind: 'supersede', id: 'a', seq: 1, addedIn: 1, body: '{"id":"a"}' },
          { kind: 'supersede', id: 'b', seq: 2, addedIn: 1, body: '{"id":"b"}' },
        ],
      },
      {
        inserts: null,
        changes: [
          { kind: 'rewrite', seq: 3, body: '{"id":"c","name":"Cid"}' },
          { kind: 'restore', seq: 1 },
        ],
      },
    ];
    for (const writes of batches) {
      const first = await store.records.stage({ held, writes });
      assert.deepEqual(await store.records.stage({ held, writes }), first);
    }
    const { counted, found } = await inspect(at);
    // {"id":"c","name":"Cid"} was added, and b lost its name.
    const grown = 23 - 13;
    assert.deepEqual(
      [counted, found],
      [found, { added: 1, changed: 1, removed: 0, grown, replaced: 23, bytes }],
    );
  });

  it('adds only the new records of a batch that repeats others', async ({ store, inspect }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    const stage = (...ids: string[]) =>
      store.records.stage({
        held,
        writes: { inserts: insertsOf(ids.map((id) => ({ id, body: JSON.stringify({ id }) }))), changes: [] },
      });
    assert.deepEqual((await stage('a', 'b')).seqs, [1, 2]);
    assert.deepEqual((await stage('b', 'c')).seqs, [2, 4]);
    const { counted, found } = await inspect(at);
    assert.deepEqual([counted, found.added], [found, 3]);
  });

  it('stores ids and texts character by character', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    const records = ['"', '\\', "'", '\n', '12', 'é', '😀', '[]', '\u2028'].map((id) => ({
      id,
      body: `{"id":${JSON.stringify(id)},"text":"\\u0000\\ud800\\/","number":12345678901234567890.10e2}`,
    }));
    await stageRecords(store, held, 'upsert', records);
    const { rows } = await store.records.compare({ held, ids: records.map(({ id }) => id) });
    assert.deepEqual(
      rows.map(({ id, body }) => ({ id, body })),
      records,
    );
  });

  it('refuses a batch that does not match the stored rows, and writes nothing', async ({
    store,
    inspect,
  }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'upsert', people({ b: 'Bert' }));
    const body = '{"id":"a"}';
    const wrong: StagedChange[] = [
      { kind: 'supersede', id: 'a', seq: 1, addedIn: 0, body },
      { kind: 'supersede', id: 'a', seq: 2, addedIn: 1, body },
      { kind: 'supersede', id: 'x', seq: 1, addedIn: 1, body },
      { kind: 'supersede', id: 'b', seq: 2, addedIn: 2, body: '{"id":"b"}' },
      { kind: 'rewrite', seq: 1, body },
      { kind: 'rewrite', seq: 9, body },
      { kind: 'restore', seq: 9 },
    ];
    const fresh = { id: 'new', body: '{"id":"new"}' };
    for (const writes of [
      { inserts: insertsOf([fresh, { id: 'a', body }]), changes: [] },
      { inserts: insertsOf([fresh, { id: 'b', body: '{"id":"b"}' }]), changes: [] },
      ...wrong.map((change) => ({ inserts: insertsOf([fresh]), changes: [change] })),
    ]) {
      await assert.rejects(
        store.records.stage({ held, writes }),
        /differs from the record that the run read earlier/,
      );
    }
    const { counted, found } = await inspect(at);
    const { replaced, bytes } = found;
    assert.deepEqual(
      [counted, found],
      [found, { added: 0, changed: 1, removed: 0, grown: 1, replaced, bytes }],
    );
  });

  it('stages, sweeps and removes long records in several steps', async ({ store, inspect }) => {
    const at = await makeWorkflow(store);
    const names = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((id) => [id, LONG + id]));
    await publishRun(store, at, names);
    const lost = await makeRunning(store, at);
    await stageRecords(store, lost, 'replace', people({ a: '', b: '', c: '' }));
    await store.records.remove({ held: lost, seqs: [4, 5] });
    const lostRun = await inspect(at);
    const { grown, replaced, bytes } = lostRun.found;
    assert.deepEqual(lostRun.counted, { added: 0, changed: 3, removed: 2, grown, replaced, bytes });
    assert.ok(grown < -5 * LONG.length);
    await store.jobs.release({ held: [lost] });
    const held = await claimOne(store);
    let calls = 1;
    while (!(await store.records.sweep({ held, limit: 500 })).done) calls++;
    assert.ok(calls > 2, `${calls} calls`);
    assert.deepEqual((await inspect(at)).counted, {
      added: 0,
      changed: 0,
      removed: 0,
      grown: 0,
      replaced: 0,
      bytes,
    });
    await stageRecords(store, held, 'replace', people({ b: '' }));
    await store.records.remove({ held, seqs: [1, 3, 4, 5] });
    const published = await publish(store, held);
    assert.deepEqual('records' in published && published.records, {
      total: 1,
      added: 0,
      changed: 1,
      removed: 4,
    });
    assert.deepEqual(await readVersion(store, { ...at, version: 2 }), [{ id: 'b', name: '' }]);
    assert.equal((await readVersion(store, { ...at, version: 1 })).length, 5);
  });

  it('stores field names: of the run with replace, otherwise of all runs', async ({ store }) => {
    const at = await makeWorkflow(store, { mode: 'upsert' });
    const run = async (id: string, fields: string[], mode?: 'replace' | 'append') => {
      const held = await makeRunning(store, at);
      await stageRecords(store, held, mode ?? 'upsert', people({ [id]: 'x' }));
      await publish(store, held, { fields, ...(mode && { mode }) });
      return (await store.records.version(at))?.fields;
    };
    assert.deepEqual(await run('a', ['id', 'b', 'a']), ['id', 'b', 'a']);
    assert.deepEqual(await run('b', ['c', 'a']), ['id', 'b', 'a', 'c']);
    assert.deepEqual(await run('c', ['d'], 'append'), ['id', 'b', 'a', 'c', 'd']);
    assert.deepEqual(await run('d', ['z', 'a'], 'replace'), ['z', 'a']);
    const many = Array.from({ length: 1_500 }, (_, n) => `f${n}`);
    assert.deepEqual(await run('e', many), ['z', 'a', ...many.slice(0, 998)]);
    assert.deepEqual((await store.records.version({ ...at, number: 2 }))?.fields, ['id', 'b', 'a', 'c']);
  });
}
