/** Pruning deletes a bounded number of rows at a time, also while the dead rows cannot be removed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { makeWorkflow, publishRun } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { Database, inTransaction, openPool } from './database.ts';

const ROWS = Number(process.env.PRUNE_ROWS ?? 6_000);
const LIMIT = 500;

test('beside a transaction that is held open each step of the pruning deletes its share', async (t) => {
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
