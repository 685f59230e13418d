/** Reading versions: lists, search, and changes between two of them. */
import assert from 'node:assert/strict';
import type { Store } from '../store.ts';
import {
  caseWith,
  makeRunning,
  makeWorkflow,
  type Open,
  people,
  publishRun,
  readChanges,
  readVersion,
  stageRecords,
} from './setup.ts';

export function testReading(open: Open): void {
  const it = caseWith(open);

  it('lists versions and their changes, newest first', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    advance(1_000);
    await publishRun(store, at, { a: 'Anna', b: 'Bob' });
    const [second, first, ...others] = await store.records.versions({ ...at, limit: 10 });
    assert.deepEqual(others, []);
    assert.deepEqual([first?.number, first?.records], [1, { total: 1, added: 1, changed: 0, removed: 0 }]);
    assert.deepEqual([second?.number, second?.records], [2, { total: 2, added: 1, changed: 1, removed: 0 }]);
    assert.equal((second?.publishedAt ?? 0) - (first?.publishedAt ?? 0), 1_000);
    assert.match(second?.jobId ?? '', /^job_/);
    assert.deepEqual(await store.records.versions({ ...at, limit: 1 }), [second]);
    assert.deepEqual(await store.records.versions({ ...at, workflowId: 'unknown', limit: 9 }), []);
  });

  it('reports an id that was removed and added again as changed, and only if it differs', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid' });
    await publishRun(store, at, { c: 'Cid' });
    await publishRun(store, at, { a: 'Anna', b: 'Bob', c: 'Cid' });
    await publishRun(store, at, { a: 'Anna' });
    const changes = async (since: number, until: number) =>
      (await readChanges(store, { ...at, since, until }, 1)).map(({ id, version, before, after }) => [
        id,
        version,
        before && JSON.parse(before).name,
        after && JSON.parse(after).name,
      ]);
    assert.deepEqual(await changes(1, 3), [['a', 3, 'Ada', 'Anna']]);
    assert.deepEqual(await changes(1, 4), [
      ['a', 3, 'Ada', 'Anna'],
      ['b', 4, 'Bob', null],
      ['c', 4, 'Cid', null],
    ]);
    assert.deepEqual(await changes(2, 4), [
      ['a', 3, null, 'Anna'],
      ['c', 4, 'Cid', null],
    ]);
    assert.deepEqual(await changes(3, 3), []);
    assert.deepEqual(await changes(0, 1), [
      ['a', 1, null, 'Ada'],
      ['b', 1, null, 'Bob'],
      ['c', 1, null, 'Cid'],
    ]);
  });

  it('limits the size of a page of changes', async ({ store }) => {
    const at = await makeWorkflow(store);
    const long = (name: string) => name.repeat(1_000_000);
    const ids = [...'abcdef'];
    for (const name of ['x', 'y']) {
      await publishRun(store, at, Object.fromEntries(ids.map((id) => [id, long(name)])));
    }
    const range = { ...at, since: 1, until: 2, after: null };
    const { rows, next } = await store.records.changes({ ...range, limit: 500 });
    assert.ok(rows.length > 0 && rows.length < 6, `${rows.length} rows`);
    assert.notEqual(next, null);
    assert.equal((await readChanges(store, { ...at, since: 1, until: 2 }, 500)).length, 6);
  });

  it('finds records by a part of their text', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada Lovelace', b: 'Bob', c: 'lovely É', d: '50 %_\\' });
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const found = (q: string, version = 1) => searchAll(store, { ...at, version, q });
    assert.deepEqual(await found('LOVE'), ['a', 'c']);
    assert.deepEqual(await found('"name":"b'), ['b']);
    assert.deepEqual(await found('É'), ['c']);
    assert.deepEqual(await found('é'), []);
    assert.deepEqual(await found('%_\\\\'), ['d']);
    assert.deepEqual(await found('_o_'), []);
    assert.deepEqual(await found('love', 2), []);
    assert.deepEqual(await found('', 2), ['a', 'b']);
    assert.deepEqual(await found('love', 0), []);
  });

  it('reads each version of records that many versions have changed, removed and added again', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    // The rows of one record are enough that records are looked up one by one, and the last records have a single row.
    const namesOf = (version: number) =>
      Object.fromEntries(
        [...'abcdefghi'].flatMap((id, n) => {
          const isThere = n !== 3 || version % 5 !== 0;
          return isThere ? [[id, n > 6 ? 'same' : `${id}${version}`]] : [];
        }),
      );
    const versions = 41;
    for (let version = 1; version <= versions; version++) await publishRun(store, at, namesOf(version));
    for (let version = 1; version <= versions; version++) {
      const expected = Object.entries(namesOf(version))
        .map(([id, name]) => ({ id, name }))
        .sort((one, other) => one.id.localeCompare(other.id));
      for (const rows of [1, 5, 1_000]) {
        const found = (await readVersion(store, { ...at, version }, rows)) as { id: string }[];
        assert.deepEqual(
          found.sort((one, other) => one.id.localeCompare(other.id)),
          expected,
        );
      }
      assert.deepEqual(
        (await searchAll(store, { ...at, version, q: `${version}"` })).sort(),
        expected.flatMap(({ id, name }) => (name === 'same' ? [] : [id])),
      );
    }
    const start = { ...at, version: 7, afterSeq: 0 };
    for (const known of [{}, { versions: 1 }, { versions }]) {
      const { json, ...first } = await store.records.page({ ...start, ...known, rows: 1_000, limit: 2 });
      assert.deepEqual(first, { count: 2, lastSeq: 2, done: false });
      assert.equal(Buffer.from(json).toString(), '{"id":"a","name":"a7"},{"id":"b","name":"b7"}');
      const found = await store.records.search({ ...start, ...known, scan: 1_000, q: 'b7', limit: 2 });
      assert.equal(Buffer.from(found.json).toString(), '{"id":"b","name":"b7"}');
    }

    // A run that has changed a record, and removed one, does not change what readers of the current version see.
    const held = await makeRunning(store, at);
    const [seq] = await stageRecords(store, held, 'upsert', people({ a: 'new' }));
    await store.records.remove({ held, seqs: [2] });
    const { seqs } = await store.records.currentSeqs({ held, afterSeq: 0, rows: 1_000 });
    assert.deepEqual(
      [seq, seqs.length, seqs.includes(1), seqs.includes(2), seqs],
      [1, 8, true, false, [...seqs].sort((one, other) => one - other)],
    );
    const current = await store.records.page({
      ...at,
      version: versions,
      afterSeq: 0,
      rows: 1_000,
      limit: 2,
    });
    assert.equal(Buffer.from(current.json).toString(), '{"id":"a","name":"a41"},{"id":"b","name":"b41"}');
  });

  it('searches in parts', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, Object.fromEntries([...'abcdefgh'].map((id) => [id, 'x'])));
    const search = (afterSeq: number, scan: number, limit: number) =>
      store.records.search({ ...at, version: 1, q: 'x', afterSeq, scan, limit });
    const { json, ...first } = await search(0, 5, 2);
    assert.deepEqual(first, { count: 2, lastSeq: 2, done: false });
    assert.equal(Buffer.from(json).toString(), '{"id":"a","name":"x"},{"id":"b","name":"x"}');
    assert.deepEqual(await search(2, 3, 9).then(({ json: _, ...rest }) => rest), {
      count: 3,
      lastSeq: 5,
      done: false,
    });
    assert.equal((await search(5, 4, 9)).done, true);
  });
}

/** The ids of all records that a search in small steps finds. */
async function searchAll(
  store: Store,
  input: { teamId: string; workflowId: string; version: number; q: string },
): Promise<string[]> {
  const ids: string[] = [];
  for (let afterSeq = 0; ; ) {
    const page = await store.records.search({ ...input, afterSeq, scan: 2, limit: 1 });
    const found = JSON.parse(`[${Buffer.from(page.json).toString()}]`) as { id: string }[];
    assert.equal(found.length, page.count);
    ids.push(...found.map(({ id }) => id));
    if (page.done) return ids;
    assert.ok(page.lastSeq > afterSeq);
    afterSeq = page.lastSeq;
  }
}
