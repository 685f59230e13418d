/** Each step of pruning deletes a bounded number of rows, even while dead rows cannot be vacuumed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { makeWorkflow, publishRun } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import * as webhooks from '../operations/webhooks.ts';
import { type Part, type Statement, textOf, type Value, valuesOf } from '../sql.ts';
import type { Tx } from '../transaction.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';

const ROWS = Number(process.env.PRUNE_ROWS ?? 6_000);
const LIMIT = 500;

test('each step of pruning deletes rows while another transaction stays open', async (t) => {
  const { url, drop } = await makeDatabase();
  let nowMs = Date.UTC(2026, 0, 1);
  const store = await openStore(url, { clock: () => nowMs, publicUrl: () => '', log: silentLogger });
  const pools = [1, 2].map(() => openPool({ url, size: 1, log: silentLogger }));
  const [own, beside] = pools;
  assert.ok(own && beside);
  t.after(async () => {
    await Promise.all([store.close(), ...pools.map((pool) => pool.end())]);
    await drop();
  });
  const db = new Database(own);
  const at = await makeWorkflow(store);
  await publishRun(store, at, { a: 'Ada' });
  await publishRun(store, at, { b: 'Bob' });
  await db.run(
    `insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
     select $1, $2, 100 + n, 1, 2, 'r' || n, '{"text":"' || repeat('x', 300) || '"}' from generate_series(1, $3::integer) n`,
    at.teamId,
    at.workflowId,
    ROWS,
  );
  nowMs += 7_200_000;
  const counted = async () =>
    (await db.get<{ rows: number }>('select count(*) as rows from record'))?.rows ?? 0;
  const before = await counted();
  const steps: { rows: number; ms: number }[] = [];
  await inTransaction(
    beside,
    async (held) => {
      await held.exec('set local idle_in_transaction_session_timeout = 0');
      await held.get('select 1 from record limit 1');
      for (let left = before, done = false; !done; ) {
        const startMs = performance.now();
        ({ done } = await store.records.prune({
          ...at,
          keepVersions: 1,
          keepMs: 0,
          graceMs: 0,
          limit: LIMIT,
        }));
        const ms = performance.now() - startMs;
        const now = await counted();
        steps.push({ rows: left - now, ms });
        left = now;
      }
    },
    { isolation: 'repeatable read read only' },
  );
  const deleting = steps.filter(({ rows }) => rows > 0);
  assert.equal(deleting.length, Math.ceil((ROWS + 1) / LIMIT));
  assert.ok(deleting.every(({ rows }) => rows <= LIMIT));
  assert.equal(await counted(), before - ROWS - 1);
  t.diagnostic(`steps of ${LIMIT} rows took up to ${Math.max(...steps.map(({ ms }) => ms)).toFixed(1)} ms`);
});

/** Explains deletions instead of running them. */
class Explaining extends Database {
  readonly plans: string[] = [];

  override async run(sql: Statement, ...values: (Value | Part)[]): Promise<number> {
    const rows = await super.all<{ 'QUERY PLAN': string }>(
      `explain (analyze, timing off) ${textOf(sql, values, 'postgres')}`,
      ...valuesOf(values),
    );
    this.plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    return 0;
  }
}

test('pruning a deleted webhook looks for one remaining delivery, and does not read all', async (t) => {
  const { url, drop } = await makeDatabase();
  const store = await openStore(url, { publicUrl: () => '', log: silentLogger });
  const pool = openPool({ url, size: 1, log: silentLogger });
  t.after(async () => {
    await Promise.all([store.close(), pool.end()]);
    await drop();
  });
  const db = new Explaining(pool);
  const { id: teamId } = await store.teams.ensure({ slug: 'default' });
  await db.exec(`
    insert into webhook (team_id, id, url, events, event_set, fires_for, state, secret, settings, created_at, deleted_at)
    values ('${teamId}', 'w', 'u', '[]', '', '', 'deleted', '', '{}', 0, 1);
    insert into delivery (team_id, id, webhook_id, event_sequence, state, created_at, origin)
    select '${teamId}', 'd' || n, case when n % 3 = 0 then 'w' else 'v' end, n, 'delivered', 0, 'event'
    from generate_series(1, 300000) n`);
  const tx = { db, now: 1_000 } as Pick<Tx, 'db' | 'now'> as Tx;
  await webhooks.prune(tx, { teamId, olderMs: 1, limit: 10 });
  const [plan = ''] = db.plans;
  const read = [...plan.matchAll(/actual rows=([\d.]+)/g)].map(([, rows]) => Number(rows));
  assert.ok(read.length > 0 && Math.max(...read) <= 1, plan);
});
