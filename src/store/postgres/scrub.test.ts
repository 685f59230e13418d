/** Scrubbing rewrites the tables' files, unless others would wait long for that. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { makeWorkflow, publishRun, readVersion } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';

const { url, drop } = await makeDatabase();
const store = await openStore(url, { publicUrl: () => '', log: silentLogger });
const pool = openPool({ url, size: 2, log: silentLogger });
after(async () => {
  await store.close();
  await pool.end();
  await drop();
});

let at: { teamId: string; workflowId: string };
beforeEach(async () => {
  at = await makeWorkflow(store);
  await publishRun(store, at, { a: 'Ada', b: 'Bob' });
});

/** The path of the table's file, which changes with every rewrite. */
const file = async () =>
  (await new Database(pool).get<{ path: string }>(`select pg_relation_filepath('record') as path`))?.path;
const scrub = (rewriteBytes: number) => store.erasure.scrub({ traces: ['ada'], rewriteBytes });

test('rewrites tables up to the given size, and reports unknown results as null', async () => {
  const before = await file();
  assert.deepEqual(await scrub(0), { logEmptied: null, rewritten: false, tracesLeft: null });
  assert.equal(await file(), before);
  assert.deepEqual(await scrub(1e9), { logEmptied: null, rewritten: true, tracesLeft: null });
  assert.notEqual(await file(), before);
  const version = (await store.records.version(at))?.number ?? 0;
  assert.equal((await readVersion(store, { ...at, version })).length, 2);
});

test('gives up when a table is in use, because all others would wait behind the rewrite', async () => {
  const before = await file();
  await inTransaction(pool, async (db) => {
    await db.get('select 1 from record limit 1');
    assert.deepEqual(await scrub(1e9), { logEmptied: null, rewritten: false, tracesLeft: null });
  });
  assert.equal(await file(), before);
  assert.deepEqual(await scrub(1e9), { logEmptied: null, rewritten: true, tracesLeft: null });
});
