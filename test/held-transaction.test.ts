/**
 * A transaction that is held open beside the load keeps every dead row where it is. What counts are the dead rows and
 * not the time: the jobs are run as fast as the database bears, and what one call of each statement touches is compared
 * before and after. `HELD_JOBS=12000` is what 60 s bring at 200 a second; `npm run soak` measures the throughput.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { silentLogger } from '../src/observe/log.ts';
import { openStore } from '../src/store/open.ts';
import { startCluster } from './support/postgres.ts';
import { makeQueueLoad } from './support/queue-load.ts';

const JOBS = Number(process.env.HELD_JOBS ?? 400);
/**
 * How often a statement may come by the dead rows of one job. Looking for what is due meets them, some in several
 * steps: claims 3 times, lanes up to 8 times (a job has three deliveries here). That is a bound on what there is, and
 * not enough: `npm run soak` shows what it costs in ten minutes.
 */
const WALKS = 10;

/** Buffers that one call touches, on average, by statement. */
type Costs = Map<string, number>;

test('a transaction that is held open makes no statement walk over all that has ended again and again', async (t) => {
  const cluster = await startCluster({
    shared_preload_libraries: 'pg_stat_statements',
    autovacuum_naptime: '1s',
  });
  const store = await openStore(cluster.url, { publicUrl: () => '', log: silentLogger });
  const load = await makeQueueLoad(store, { teams: 10, workflows: 10 });
  const [held, own] = await Promise.all([1, 2].map(() => connect(cluster.url)));
  assert.ok(held && own);
  t.after(async () => {
    await Promise.all([held.end(), own.end(), store.close()]);
    await cluster.stop();
  });
  await own.query('create extension pg_stat_statements');
  await load.round();
  await own.query('vacuum analyze');
  await held.query('begin isolation level repeatable read');
  await held.query('select 1 from job limit 1');

  const before = await costs(own, load.round);
  for (let jobs = 0; jobs < JOBS; jobs += load.jobs) await load.round();
  const after = await costs(own, load.round);

  for (const [query, buffers] of after) {
    const more = buffers - (before.get(query) ?? 0);
    assert.ok(more <= WALKS * (JOBS + load.jobs), `${Math.round(more)} buffers more: ${query}`);
  }
  // A beat knows its jobs by their keys, and has nothing to do with those of others.
  const beats = [...after.keys()].filter((query) => query.includes('mine.place'));
  assert.equal(beats.length, 1);
  for (const query of beats) assert.ok((after.get(query) ?? 0) <= 3 * (before.get(query) ?? 0));
});

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

async function costs(client: pg.Client, round: () => Promise<void>): Promise<Costs> {
  await client.query('select pg_stat_statements_reset()');
  await round();
  const { rows } = await client.query<{ query: string; buffers: number }>(
    `select query, ((shared_blks_hit + shared_blks_read) / calls)::float8 as buffers
     from pg_stat_statements where query ~* '^\\s*(select|with|insert|update|delete)' and calls >= 2`,
  );
  return new Map(rows.map(({ query, buffers }) => [query, buffers]));
}
