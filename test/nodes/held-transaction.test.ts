/**
 * A long-running transaction keeps PostgreSQL from removing dead rows. The number of dead rows, not the time, slows
 * statements, so the jobs run as fast as the database allows. The number of buffers that one call of each statement
 * touches is compared before and after that load.
 *
 * `HELD_JOBS=12000` is the load of 60 s at 200 jobs per second. With it, the same load also runs alternately with and
 * without such a transaction, and the durations are compared; `npm run soak` does that for ten minutes and prints
 * them.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import { administer, startCluster } from '../support/postgres.ts';
import { makeBesideLoads, makeQueueLoad } from '../support/store/queue-load.ts';

const { HELD_JOBS } = process.env;
const JOBS = Number(HELD_JOBS ?? 240);
const TEAMS = 4;
const WORKFLOWS = 5;
/** Jobs per claim. */
const AT_ONCE = 5;
/** At least one survey (`claim-bounds.ts`) happens within this many claims. */
const CLAIMS_TO_SURVEY = 60;
const ROUNDS_MEASURED = 3;
const ROUNDS_COMPARED = 5;

/**
 * Statements that a later round may not run: the check after a slow search of lanes, loading a lane, whose text depends
 * on the classes, the first lease of a lane, and changes of the agenda, which depend on the time since the last one.
 */
const BY_CHANCE =
  /^select pg_relation_size|^\s*with wanted \(class, most\)|insert into lane|^\s*update team set \w+_at = /;

/** Average number of buffers that one call touches, by the id of the statement. */
type Costs = Map<string, { query: string; buffers: number }>;

const cluster = await startCluster({
  shared_preload_libraries: 'pg_stat_statements',
  autovacuum_naptime: '1s',
});
after(() => cluster.stop());

test('with a long-running transaction, no statement scans all ended jobs', async (t) => {
  await administer(cluster.url, 'create database counted');
  const url = new URL(cluster.url);
  url.pathname = '/counted';
  let nowMs = Date.now();
  const store = await openStore(url.href, { clock: () => nowMs, publicUrl: () => '', log: silentLogger });
  const load = await makeQueueLoad(store, { teams: TEAMS, workflows: WORKFLOWS, atOnce: AT_ONCE });
  const [held, own] = await Promise.all([1, 2].map(() => connect(url.href)));
  assert.ok(held && own);
  t.after(() => Promise.all([held.end(), own.end(), store.close()]));
  const round = () => {
    // All rows written in a round are older than any transaction in the next one.
    nowMs += 20_000;
    return load.round();
  };
  /** A round whose claims start after all jobs that ended before it. */
  const measured = async () => {
    nowMs += 20_000;
    for (let n = 0; n < CLAIMS_TO_SURVEY; n += 1) {
      assert.deepEqual(
        await store.jobs.claim({ nodeId: 'node-of-surveys', limit: 1, leaseMs: 1, perTeam: 0 }),
        [],
      );
    }
    return costs(own, round);
  };
  await own.query('create extension pg_stat_statements');
  await round();
  await own.query('vacuum analyze');
  await held.query('begin isolation level repeatable read');
  await held.query('select 1 from job limit 1');

  const before = await measured();
  for (let jobs = 0; jobs < JOBS; jobs += load.jobs) await round();
  const last: Costs[] = [];
  for (let n = 0; n < ROUNDS_MEASURED; n += 1) last.push(await measured());

  const jobs = JOBS + ROUNDS_MEASURED * load.jobs;
  for (const [id, { query, buffers: first }] of before) {
    const later = last.flatMap((one) => one.get(id)?.buffers ?? []);
    if (later.length === 0) {
      assert.match(query, BY_CHANCE);
      continue;
    }
    const least = Math.min(...later);
    assert.ok(least <= 2 * first + 100 + passedBy(query, jobs), `${first} buffers became ${least}: ${query}`);
  }
  for (const known of WALKS.keys()) assert.ok([...before.values()].some(({ query }) => known.test(query)));
});

test('a long-running transaction does not halve the throughput', {
  skip: HELD_JOBS === undefined && 'it compares times: only with HELD_JOBS',
}, async (t) => {
  const loads = await makeBesideLoads(cluster.url, { teams: TEAMS, workflows: WORKFLOWS });
  t.after(() => loads.end());
  await loads.hold();
  const took = { alone: [] as number[], beside: [] as number[] };
  // Alternately, so that other load of the machine slows both.
  for (let jobs = 0; jobs < JOBS; jobs += loads.beside.jobs) {
    for (const name of ['alone', 'beside'] as const) {
      const startMs = performance.now();
      await loads[name].round();
      took[name].push(performance.now() - startMs);
    }
  }
  const [alone, beside] = [took.alone, took.beside].map((rounds) => median(rounds.slice(-ROUNDS_COMPARED)));
  t.diagnostic(`a round takes ${alone} ms alone, ${beside} ms with the transaction`);
  assert.ok((beside as number) <= 2 * (alone as number), `${alone} ms became ${beside} ms`);
});

/**
 * Statements that scan entries of ended jobs, and the number of buffers that this costs. The check of all lanes reads
 * each delivery in several steps, so it pauses after being slow. Statements that look for the unfinished jobs of a
 * workflow read two entries for each earlier job of that workflow: one in the index that keeps slots unique, and one
 * to check visibility.
 */
const WALKS = new Map<RegExp, (jobs: number) => number>([
  [/^\s*with recursive waiting_lane/, (jobs) => 8 * jobs],
  // Jobs of all workflows of a team are queued together.
  [/^\s*insert into job\b/, (jobs) => WORKFLOWS * ofOneWorkflow(jobs)],
  [/^\s*select .* from unnest\(.* order by slot/s, (jobs) => WORKFLOWS * ofOneWorkflow(jobs)],
  [/^\s*with recursive.*update job\s+set state = .* from free/s, (jobs) => AT_ONCE * ofOneWorkflow(jobs)],
]);

function ofOneWorkflow(jobs: number): number {
  return (4 * jobs) / (TEAMS * WORKFLOWS);
}

function passedBy(query: string, jobs: number): number {
  return [...WALKS].find(([known]) => known.test(query))?.[1](jobs) ?? 0;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

async function costs(client: pg.Client, round: () => Promise<void>): Promise<Costs> {
  await client.query('select pg_stat_statements_reset()');
  await round();
  // Statements prepared before the reset are listed with other texts than those prepared after it, but the same id.
  const { rows } = await client.query<{ id: string; query: string; buffers: number }>(
    `select queryid as id, query, ((shared_blks_hit + shared_blks_read) / calls)::float8 as buffers
     from pg_stat_statements where query ~* '^\\s*(select|with|insert|update|delete)' and calls >= 2`,
  );
  return new Map(rows.map(({ id, ...cost }) => [id, cost]));
}
