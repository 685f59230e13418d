/** Each statement reads a bounded number of rows per batch, also when the planner has no statistics. */

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import type { AttemptLease } from '../../model/job.ts';
import { planWrites, type StagedChange } from '../../model/planned-writes.ts';
import { NO_QUOTAS } from '../../model/quota.ts';
import { silentLogger } from '../../observe/log.ts';
import { makeRunning, makeWorkflow, publishRun, stageRecords } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { changes } from '../operations/history/changes.ts';
import { recordChanges } from '../operations/history/record-history.ts';
import { publish as publishIn } from '../operations/publish.ts';
import { compare, currentSeqs, page, search } from '../operations/records.ts';
import { remove, stage, sweep } from '../operations/stage.ts';
import { prune } from '../operations/versions.ts';
import { type Part, type Statement, textOf, type Value, valuesOf } from '../sql.ts';
import { type Tx, untouched } from '../transaction.ts';
import { openPool } from './connections.ts';
import { Database } from './database.ts';

const { url, drop } = await makeDatabase();
const store = await openStore(url, { publicUrl: () => '', log: silentLogger });
const pool = openPool({ url, size: 1, log: silentLogger });
after(async () => {
  await store.close();
  await pool.end();
  await drop();
});

const RECORDS = 4_000;
const BATCH = 20;
/** Maximum rows that one statement may read per batch: more than it needs, and far fewer than all. */
const MAX_READ = 10 * BATCH;

test('each statement uses the intended index in a team without statistics', async () => {
  const known = await makeWorkflow(store, { team: 'known' });
  await publishRun(store, known, Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`k${n}`, 'x'])));
  await new Database(pool).exec('analyze');
  const at = await makeWorkflow(store, { team: 'new' });
  const first = await makeRunning(store, at);
  for (let start = 0; start < RECORDS; start += 500)
    await stageRecords(store, first, 'upsert', some(start, 500, 'a'));
  await publish(first);
  const second = await makeRunning(store, at);
  for (let start = 0; start < RECORDS / 2; start += 500) {
    await stageRecords(store, second, 'upsert', some(start, 500, 'b'));
  }
  await publish(second);

  const held = await makeRunning(store, at);
  const there = some(RECORDS - BATCH, BATCH, 'c');
  const { version, rows } = await explaining((tx) => compare(tx, { held, ids: there.map(({ id }) => id) }));
  assert.equal(rows.length, BATCH);
  const records = new Map([...there, ...some(RECORDS, BATCH, 'c')].map(({ id, body }) => [id, body]));
  const { writes } = planWrites({ version, rows, records, mode: 'upsert' });
  const { seqs } = await explaining((tx) => stage(tx, { held, writes }));
  assert.equal(seqs.length, BATCH);
  const rewritten = writes.changes.map(
    ({ seq }, n): StagedChange => ({ kind: n % 2 ? 'restore' : 'rewrite', seq, body: '{}' }),
  );
  assert.equal(rewritten.length, BATCH);
  await explaining((tx) => stage(tx, { held, writes: { inserts: null, changes: rewritten } }));
  await explaining((tx) => remove(tx, { held, seqs: Array.from({ length: BATCH }, (_, n) => n + 1) }));
  await explaining((tx) => currentSeqs(tx, { held, afterSeq: 100, rows: BATCH }));
  await explaining((tx) => page(tx, { ...at, version: 1, afterSeq: 100, rows: BATCH }));
  const cursor = (part: 'written' | 'removed') => ({ part, version: 2, seq: 10 });
  await explaining((tx) =>
    changes(tx, { ...at, since: 1, until: 2, after: cursor('written'), limit: BATCH }),
  );
  await explaining((tx) =>
    changes(tx, { ...at, since: 1, until: 2, after: cursor('removed'), limit: BATCH }),
  );
  await explaining((tx) => publishIn(tx, { held, state: undefined, fields: [] }));
  const again = await makeRunning(store, at);
  await stageRecords(store, again, 'upsert', some(0, 500, 'd'));
  await explaining((tx) => sweep(tx, { held: again, limit: BATCH }));
  await explaining((tx) => prune(tx, { ...at, keepVersions: 1, keepMs: 0, graceMs: 0, limit: BATCH }));
  assert.ok(statements > 20, `${statements} statements`);
});

test('a record that 200 versions have changed costs no more to read, compare, publish or remove', async () => {
  const at = await makeWorkflow(store, { team: 'changing' });
  const all = (version: number) =>
    Object.fromEntries(some(0, BATCH, `v${version}`).map(({ id }) => [id, `${version}`]));
  const versions = 200;
  for (let version = 1; version <= versions; version++) await publishRun(store, at, all(version));
  for (const version of [100, versions]) {
    const whole = { ...at, version, afterSeq: 0 };
    assert.equal((await explaining((tx) => page(tx, { ...whole, rows: 2_000 }))).count, BATCH);
    assert.equal((await explaining((tx) => page(tx, { ...whole, rows: 2_000, limit: 9 }))).count, 9);
    const found = await explaining((tx) => search(tx, { ...whole, scan: 2_000, q: `${version}`, limit: 99 }));
    assert.equal(found.count, BATCH);
  }
  const range = { ...at, since: versions - 1, until: versions, limit: BATCH };
  const { rows } = await explaining((tx) => changes(tx, { ...range, after: null }));
  assert.equal(rows.length, BATCH);
  const after = { part: 'removed' as const, version: 2, seq: 0 };
  await explaining((tx) => changes(tx, { ...range, since: 1, after }));
  const old = { ...at, since: 1, until: 50, limit: BATCH };
  const halfway = { part: 'written' as const, version: 50, seq: 0 };
  assert.equal((await explaining((tx) => changes(tx, { ...old, after: halfway }))).rows.length, BATCH);
  // Reads all states of this record, and of no other.
  assert.equal(
    (await explaining((tx) => recordChanges(tx, { ...at, recordId: 'p0', limit: 9 }))).rows.length,
    9,
  );

  const held = await makeRunning(store, at);
  const current = await explaining((tx) => currentSeqs(tx, { held, afterSeq: 0, rows: 2_000 }));
  assert.equal(current.seqs.length, BATCH);
  await explaining((tx) => remove(tx, { held, seqs: Array.from({ length: BATCH }, (_, n) => n + 1) }));
  await explaining((tx) => publishIn(tx, { held, state: undefined, fields: [] }));
});

let statements = 0;

/** Runs every statement twice: first with `explain analyze`, which is rolled back. */
class Explaining extends Database {
  #before: Promise<unknown> = Promise.resolve();

  override all<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row[]> {
    return this.#explained(sql, values, () => super.all<Row>(sql, ...values));
  }

  override run(sql: Statement, ...values: (Value | Part)[]): Promise<number> {
    return this.#explained(sql, values, () => super.run(sql, ...values));
  }

  override snapshot<Result>(read: (db: Database) => Promise<Result>): Promise<Result> {
    return read(this);
  }

  #explained<Result>(
    statement: Statement,
    values: (Value | Part)[],
    perform: () => Promise<Result>,
  ): Promise<Result> {
    const sql = textOf(statement, values, 'postgres');
    const result = this.#before.then(async () => {
      if (sql.startsWith('set ')) return perform();
      await super.exec('savepoint before');
      const [explained] = await super.all<{ 'QUERY PLAN': [{ Plan: Node }] }>(
        `explain (analyze, format json) ${sql}`,
        ...valuesOf(values),
      );
      await super.exec('rollback to before');
      statements += 1;
      const read = explained === undefined ? 0 : rowsRead(explained['QUERY PLAN'][0].Plan);
      assert.ok(read <= MAX_READ, `${read} rows were read by ${sql}\n${JSON.stringify(explained, null, 1)}`);
      return perform();
    });
    this.#before = result.catch(() => undefined);
    return result;
  }
}

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Node[];
}

/** The rows of `record` that a plan has read. */
function rowsRead(node: Node): number {
  const here = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
  const isScan = node['Node Type'].endsWith('Scan') && node['Relation Name'] === 'record';
  return (node.Plans ?? []).reduce(
    (rows, child) => rows + rowsRead(child),
    isScan ? here * node['Actual Loops'] : 0,
  );
}

async function explaining<Result>(operation: (tx: Tx) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const tx = {
      db: new Explaining(client),
      now: store.now(),
      publicUrl: '',
      quotas: NO_QUOTAS,
      touched: untouched(),
      events: [],
      dues: new Map(),
    };
    const result = await operation(tx);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

function some(start: number, count: number, name: string): { id: string; body: string }[] {
  return Array.from({ length: count }, (_, n) => `p${start + n}`).map((id) => ({
    id,
    body: JSON.stringify({ id, name }),
  }));
}

function publish(held: AttemptLease) {
  return store.records.publish({
    held,
    state: undefined,
    fields: [],
  });
}
