/**
 * `npm run soak [-- --minutes N]`: runs jobs and deliveries through the store on a PostgreSQL server, for N minutes alone and
 * for N minutes beside an open transaction (default: 10). The two loads take turns of a few seconds in two databases, so that
 * other work on the machine affects both; an open transaction affects only its own database. Prints the jobs per second of
 * both, their ratio, and the sizes of the tables once a minute. Nothing here passes or fails. With `--overload`: sends more
 * requests than the service can handle (overload.ts).
 */
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startCluster } from '../test/support/postgres.ts';
import { type BesideLoad, makeBesideLoads } from '../test/support/store/queue-load.ts';
import { soakOverload } from './overload.ts';

const MINUTE_MS = 60_000;
const TURN_MS = 5_000;
const SIZES = `
  select string_agg(name || ' ' || pg_size_pretty(pg_total_relation_size(name::regclass)), ', ') as sizes
  from unnest(array['job', 'delivery', 'event', 'attempt', 'team', 'workflow']) as name`;

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, overload: { type: 'boolean', default: false } },
});
const minutes = Number(values.minutes);
if (values.overload) {
  await soakOverload({ minutes });
  process.exit();
}
const cluster = await startCluster();
const loads = await makeBesideLoads(cluster.url, { teams: 10, workflows: 20 });
await loads.hold();
for (let minute = 1; minute <= minutes; minute += 1) {
  const done = new Map([loads.alone, loads.beside].map((load) => [load, { jobs: 0, ms: 0 }]));
  const isOver = ({ ms }: { ms: number }) => ms >= MINUTE_MS;
  while (![...done.values()].every(isOver)) for (const [load, sum] of done) await takeTurn(load, sum);
  const [alone, beside] = [...done.values()].map(({ jobs, ms }) => (1_000 * jobs) / ms) as [number, number];
  const ratio = `alone ${alone.toFixed(1)} jobs/s, beside ${beside.toFixed(1)}, ratio ${(beside / alone).toFixed(2)}`;
  console.log(`minute ${minute}: ${ratio}; ${await sizes(loads.beside)}`);
}
await loads.end();
await cluster.stop();

async function takeTurn(load: BesideLoad, sum: { jobs: number; ms: number }): Promise<void> {
  const startMs = performance.now();
  while (performance.now() - startMs < TURN_MS) {
    await load.round();
    sum.jobs += load.jobs;
  }
  sum.ms += performance.now() - startMs;
}

async function sizes({ url }: BesideLoad): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ sizes: string }>(SIZES);
  await client.end();
  return rows[0]?.sizes;
}
