/**
 * `npm run soak [-- --minutes N]`: the life of jobs and deliveries through the store on a PostgreSQL of its own, for N
 * minutes (10 unless told) alone and for N minutes beside a transaction that is held open. Prints jobs a second and the
 * sizes of the tables once a minute; nothing here passes or fails.
 */
import { parseArgs } from 'node:util';
import pg from 'pg';
import { silentLogger } from '../src/observe/log.ts';
import { openStore } from '../src/store/open.ts';
import { startCluster } from '../test/support/postgres.ts';
import { makeQueueLoad } from '../test/support/queue-load.ts';

const MINUTE_MS = 60_000;
const SIZES = `
  select string_agg(name || ' ' || pg_size_pretty(pg_total_relation_size(name::regclass)), ', ') as sizes
  from unnest(array['job', 'delivery', 'event', 'attempt', 'team', 'workflow']) as name`;

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } });
const minutes = Number(values.minutes);
for (const isHeld of [false, true]) await measure(isHeld);

async function measure(isHeld: boolean): Promise<void> {
  const cluster = await startCluster();
  const store = await openStore(cluster.url, { publicUrl: () => '', log: silentLogger });
  const load = await makeQueueLoad(store, { teams: 10, workflows: 20 });
  const beside = new pg.Client({ connectionString: cluster.url });
  await beside.connect();
  const own = new pg.Client({ connectionString: cluster.url });
  await own.connect();
  await load.round();
  if (isHeld) await beside.query('begin isolation level repeatable read; select 1 from job limit 1');
  console.log(isHeld ? 'Beside a transaction that is held open:' : 'Alone:');
  for (let minute = 1; minute <= minutes; minute += 1) {
    const startMs = performance.now();
    let jobs = 0;
    while (performance.now() - startMs < MINUTE_MS) {
      await load.round();
      jobs += load.jobs;
    }
    const seconds = (performance.now() - startMs) / 1_000;
    const { rows } = await own.query<{ sizes: string }>(SIZES);
    console.log(`  minute ${minute}: ${(jobs / seconds).toFixed(1)} jobs/s; ${rows[0]?.sizes}`);
  }
  await Promise.all([beside.end(), own.end(), store.close()]);
  await cluster.stop();
}
