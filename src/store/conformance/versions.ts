/** Retention: how long old versions are kept, and how they are pruned. */
import assert from 'node:assert/strict';
import type { Definition, WorkflowRef } from '../../model/workflow.ts';
import type { Retention } from '../operations/versions.ts';
import type { Store } from '../store.ts';
import {
  allSteps,
  caseWith,
  makeRunning,
  makeWorkflow,
  type Open,
  people,
  publishRun,
  stageRecords,
} from './setup.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const KEEP_ALL: Retention = { keepVersions: 1_000, keepMs: Number.MAX_SAFE_INTEGER, graceMs: 0 };

export function testRetention(open: Open): void {
  const it = caseWith(open);

  it('keeps the newest versions and prunes the others', async ({ store, inspect }) => {
    const at = await makeVersions(store, 5);
    const keep = { ...KEEP_ALL, keepVersions: 2 };
    assert.deepEqual((await store.records.prunable({ teamId: at.teamId, ...keep, limit: 10 })).found, [at]);
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 4);
    assert.equal(await store.records.version({ ...at, number: 3 }), undefined);
    const { rows, versions } = await inspect(at);
    assert.deepEqual([rows, versions], [3, 2]);
    assert.deepEqual((await store.records.prunable({ teamId: at.teamId, ...keep, limit: 10 })).found, []);
  });

  it('counts the age of a version from when it was superseded', async ({ store, advance }) => {
    const at = await makeVersions(store, 1);
    advance(100 * MINUTE_MS);
    await publishRun(store, at, { a: 'new' });
    const keep = { ...KEEP_ALL, keepMs: 10 * MINUTE_MS };
    advance(10 * MINUTE_MS - 1);
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 1);
    advance(1);
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 2);
    advance(1_000 * MINUTE_MS);
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 2);
  });

  it('prunes no version that was current a short time ago', async ({ store, advance }) => {
    const at = await makeVersions(store, 4);
    const keep = { keepVersions: 1, keepMs: 0, graceMs: MINUTE_MS };
    advance(MINUTE_MS - 1);
    assert.deepEqual((await store.records.prunable({ teamId: at.teamId, ...keep, limit: 10 })).found, []);
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 0);
    advance(1);
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 4);
  });

  it('moves the oldest version before it deletes rows, and few of them at a time', async ({
    store,
    inspect,
  }) => {
    const at = await makeVersions(store, 9);
    const seen: (number | undefined)[][] = [];
    for (let done = false; !done; ) {
      ({ done } = await store.records.prune({ ...at, ...KEEP_ALL, keepVersions: 1, limit: 3 }));
      seen.push([(await store.records.version(at))?.oldest, (await inspect(at)).rows]);
    }
    // There are ten rows at first. Deleting a version deletes one row, except for version 0, which is empty.
    assert.deepEqual(seen.slice(0, 3), [
      [3, 8],
      [6, 5],
      [9, 2],
    ]);
    assert.deepEqual(seen.at(-1), [9, 2]);
    assert.equal((await inspect(at)).versions, 1);
  });

  it('deletes long rows a few at a time', async ({ store, inspect }) => {
    const at = await makeWorkflow(store);
    for (const name of ['x', 'y']) {
      const names = [...'abc'].map((id) => [id, name.repeat(1_000_000)]);
      await publishRun(store, at, Object.fromEntries(names));
    }
    await store.records.prune({ ...at, ...KEEP_ALL, keepVersions: 1, limit: 500 });
    const { rows } = await inspect(at);
    assert.ok(rows > 3 && rows < 6, `${rows} rows`);
    await pruneAll(store, at, { ...KEEP_ALL, keepVersions: 1 });
    assert.equal((await inspect(at)).rows, 3);
  });

  it('keeps what a running job has written, and what it needs', async ({ store, inspect }) => {
    const at = await makeVersions(store, 3);
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'replace', people({ a: 'late', z: 'new' }));
    await store.records.remove({ held, seqs: [2] });
    await pruneAll(store, at, { keepVersions: 1, keepMs: 0, graceMs: 0 });
    const { counted, found } = await inspect(at);
    const { grown, replaced, bytes } = found;
    assert.deepEqual([counted, found], [found, { added: 1, changed: 1, removed: 1, grown, replaced, bytes }]);
    while (!(await store.records.sweep({ held, limit: 10 })).done);
    assert.equal((await inspect(at)).rows, 2);
  });

  it('keeps the versions of a workflow as long as its definition says', async ({ store, advance }) => {
    const usual = await makeVersions(store, 4, 'usual');
    const many = await makeVersions(store, 4, 'many', { keep: { versions: 3, days: 2 } });
    const keep = { keepVersions: 2, keepMs: DAY_MS, graceMs: 0 };
    const oldest = async (at: WorkflowRef) => {
      await pruneAll(store, at, keep);
      return (await store.records.version(at))?.oldest;
    };
    const prunable = () => store.records.prunable({ teamId: many.teamId, ...keep, limit: 10 });
    assert.deepEqual((await prunable()).found, [many, usual]);
    assert.deepEqual([await oldest(usual), await oldest(many)], [3, 2]);
    const { found, at } = await prunable();
    assert.deepEqual([found, at], [[], store.now() + DAY_MS]);
    advance(DAY_MS);
    assert.deepEqual((await prunable()).found, [usual]);
    assert.deepEqual([await oldest(usual), await oldest(many)], [4, 2]);
    assert.equal((await prunable()).at, store.now() + DAY_MS);
    advance(DAY_MS);
    assert.equal(await oldest(many), 4);
  });

  it('applies a new limit to versions that are stored already', async ({ store, advance }) => {
    const at = await makeVersions(store, 5, 'people', { keep: { versions: 5, days: 9 } });
    const keep = { keepVersions: 2, keepMs: DAY_MS, graceMs: 0 };
    advance(2 * DAY_MS);
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 1);
    await makeWorkflow(store, { keep: { versions: 3, days: 9 } });
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 3);
    await makeWorkflow(store);
    await pruneAll(store, at, keep);
    assert.equal((await store.records.version(at))?.oldest, 5);
  });

  it('lists only workflows with versions to prune', async ({ store }) => {
    const quiet = await makeVersions(store, 1, 'quiet');
    const busy = await makeVersions(store, 3, 'busy');
    const keep = { ...KEEP_ALL, keepVersions: 2 };
    const prunable = async () =>
      (await store.records.prunable({ teamId: busy.teamId, ...keep, limit: 10 })).found;
    assert.deepEqual(await prunable(), [busy]);
    await pruneAll(store, busy, keep);
    await pruneAll(store, quiet, keep);
    assert.deepEqual(await prunable(), []);
    assert.deepEqual(await store.records.prune({ ...busy, workflowId: 'unknown', ...keep, limit: 1 }), {
      done: true,
    });
  });
}

/** A workflow with `count` versions; each changes one record, and leaves the other unchanged. */
async function makeVersions(
  store: Store,
  count: number,
  id = 'people',
  changes: Partial<Definition> = {},
): Promise<WorkflowRef> {
  const at = await makeWorkflow(store, { id, ...changes });
  for (let n = 0; n < count; n++) await publishRun(store, at, { a: `${n}`, b: 'Bob' });
  return at;
}

async function pruneAll(store: Store, at: WorkflowRef, keep: Retention): Promise<void> {
  await allSteps(store.records.prune, { ...at, ...keep, limit: 3 });
}
