/**
 * What the life of a job costs on PostgreSQL: with 10 teams, with 1,000 active of 100,000 teams, and the same on a Citus
 * cluster of a coordinator and two workers. All servers share this machine, so that rates say little: the figures are
 * processor time, statements and write-ahead log of each server, and the duration of single calls.
 */
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { silentLogger } from '../src/observe/log.ts';
import { HOLDER, OK, settlement, subscribe } from '../src/store/conformance/sending.ts';
import {
  CLAIM,
  heldOf,
  makeWorkflow,
  people,
  publish,
  stageRecords,
} from '../src/store/conformance/setup.ts';
import { openDistribution, openStore } from '../src/store/open.ts';
import type { Store } from '../src/store/store.ts';
import { HAS_CITUS, startCitus } from '../test/support/citus.ts';
import { administer, type Cluster, startCluster } from '../test/support/postgres.ts';
import { type Benchmark, type Contestant, median } from './benchmark.ts';
import { DURABILITY, SETTINGS } from './postgres.ts';

const SIZES = [
  { teams: 10, active: 10 },
  { teams: 100_000, active: 1_000 },
] as const;
/** Jobs per round, each of another team if there are enough. */
const JOBS = 200;
const AT_ONCE = 4;
const EMPTY_CLAIMS = 50;
/** As many as a cluster gets by default. */
const SHARDS = 32;
const TICKS_PER_SECOND = 100;

const benchmark: Benchmark = {
  about:
    `PostgreSQL (${DURABILITY}). ${JOBS} jobs per round, ${AT_ONCE} at a time: queued, claimed, published with one changed record, ` +
    'and its events delivered to a webhook, by calls of the store; the deliveries are settled without being sent. ' +
    'Each team has a workflow and a webhook. "server": processor time of the PostgreSQL server; on Citus, of the coordinator.',
  units: {
    'a queue call': 'ms',
    'a claim': 'ms',
    'a publish': 'ms',
    'a delivery': 'ms',
    'an empty claim': 'ms',
    'node, each job': 'ms of processor time',
    'server, each job': 'ms of processor time',
    'worker 1, each job': 'ms of processor time',
    'worker 2, each job': 'ms of processor time',
    'server, statements': 'a job',
    'worker 1, statements': 'a job',
    'worker 2, statements': 'a job',
    'server, log written': 'KiB a job',
    'worker 1, log written': 'KiB a job',
    'worker 2, log written': 'KiB a job',
  },
  rounds: 3,
  async setUp() {
    const settings = { ...SETTINGS, shared_preload_libraries: 'pg_stat_statements', max_connections: '300' };
    const plain = await startCluster(settings);
    const citus = HAS_CITUS ? await startCitus(SETTINGS) : undefined;
    const made: Contender[] = [];
    for (const [at, { teams, active }] of SIZES.entries()) {
      const name =
        active < teams
          ? `${active.toLocaleString('en')} of ${teams.toLocaleString('en')} teams`
          : `${teams} teams`;
      await administer(plain.url, `create database scale_${at}`);
      const url = plain.url.replace(/\/postgres(\?|$)/, `/scale_${at}$1`);
      await administer(url, 'create extension pg_stat_statements');
      made.push(await contender(name, { url, nodes: [{ cluster: plain, url }], teams, active }));
      if (citus === undefined) continue;
      const database = await citus.makeDatabase();
      const urls = [database.url, ...database.workers];
      const nodes = [citus.coordinator, ...citus.workers].map((cluster, n) => ({
        cluster,
        url: urls[n] as string,
      }));
      made.push(await contender(`Citus, ${name}`, { url: database.url, nodes, teams, active }));
    }
    return {
      contestants: made,
      skipped: citus === undefined ? ['Citus: no installed PostgreSQL has the extension'] : [],
      async tearDown() {
        for (const one of made) await one.close();
        await citus?.stop();
        await plain.stop();
      },
    };
  },
};
export default benchmark;

interface Node {
  cluster: Cluster;
  url: string;
}

type Contender = Contestant & { close(): Promise<void> };

async function contender(
  name: string,
  { url, nodes, teams, active }: { url: string; nodes: readonly Node[]; teams: number; active: number },
): Promise<Contender> {
  const options = { publicUrl: () => '', log: silentLogger, own: true };
  let store = await openStore(url, options);
  if (nodes.length > 1) {
    await store.close();
    const distribution = await openDistribution(url, { log: silentLogger });
    await distribution.move({ to: 'nodes', shards: SHARDS, onMoved: () => undefined });
    await distribution.close();
    store = await openStore(url, options);
  }
  const { teamId, workflowId } = await makeWorkflow(store, { team: 'first', id: 'people' });
  await subscribe(store, { teamId, workflowId: null });
  // A workflow accepts one job at a time.
  const workflows = Math.ceil(JOBS / active);
  await copyTeams(url, teamId, { teams, workflows });
  const clients = await Promise.all(
    nodes.map(async (node) => ({ ...node, client: await connected(node.url) })),
  );
  let turn = 0;
  const next = () => {
    turn += 1;
    const [team, workflow] = [turn % active, Math.floor(turn / active) % workflows];
    return {
      teamId: team === 0 ? teamId : `${teamId}${team}`,
      workflowId: workflow === 0 ? workflowId : `${workflowId}${workflow}`,
    };
  };
  // The connections and caches of the first calls do not count.
  await lives(store, next, 20);
  return {
    name,
    async round() {
      await Promise.all(clients.map(({ client }) => client.query('select pg_stat_statements_reset()')));
      const before = await Promise.all(clients.map(usage));
      const own = process.cpuUsage();
      const took = await lives(store, next, JOBS);
      const { user, system } = process.cpuUsage(own);
      const after = await Promise.all(clients.map(usage));
      const empty = await timed(EMPTY_CLAIMS, () => store.jobs.claim({ ...CLAIM, limit: 4 }));
      const perServer = after.map((now, at) => {
        const was = before[at] as Usage;
        const server = at === 0 ? 'server' : `worker ${at}`;
        return [
          [`${server}, each job`, (now.processorMs - was.processorMs) / JOBS],
          [`${server}, statements`, now.statements / JOBS],
          [`${server}, log written`, (now.logBytes - was.logBytes) / 1_024 / JOBS],
        ] as const;
      });
      return {
        ...took,
        'an empty claim': empty,
        'node, each job': (user + system) / 1_000 / JOBS,
        ...Object.fromEntries(perServer.flat()),
      };
    },
    async close() {
      await Promise.all(clients.map(({ client }) => client.end()));
      await store.close();
    },
  };
}

/** Copies the first team with its webhook, and its workflow. Ids of the copies: the first id and a number. */
async function copyTeams(
  url: string,
  teamId: string,
  { teams, workflows }: { teams: number; workflows: number },
): Promise<void> {
  const client = await connected(url);
  const copy = async (
    table: string,
    changed: Record<string, string>,
    from = `generate_series(1, ${teams - 1}) as n`,
  ) => {
    const key = table === 'team' ? 'id' : 'team_id';
    const { rows } = await client.query(`select * from ${table} where ${key} = $1`, [teamId]);
    const columns = Object.keys(rows[0]).filter((column) => rows[0][column] !== null);
    const values = columns.map(
      (column) => changed[column] ?? `'${String(rows[0][column]).replaceAll("'", "''")}'`,
    );
    await client.query(`insert into ${table} (${columns}) select ${values} from ${from}`);
  };
  await client.query('update team set jobs_at = null, lanes_at = null, usage_at = null, prune_at = null');
  await copy('team', { id: `'${teamId}' || n`, slug: `'team-' || n` });
  await copy(
    'workflow',
    {
      team_id: `'${teamId}' || coalesce(nullif(n, 0)::text, '')`,
      id: `'people' || coalesce(nullif(w, 0)::text, '')`,
    },
    `generate_series(0, ${teams - 1}) as n cross join generate_series(0, ${workflows - 1}) as w where n + w > 0`,
  );
  await copy('webhook', { team_id: `'${teamId}' || n` });
  await client.query('vacuum analyze');
  await client.end();
}

/** Runs jobs from their queue call to their last delivery. Returns the duration of each kind of call. */
async function lives(
  store: Store,
  next: () => { teamId: string; workflowId: string },
  count: number,
): Promise<Record<string, number>> {
  const took: Record<string, number[]> = {};
  const note = (name: string, ms: number, calls: number) => {
    took[name] ??= [];
    took[name].push(ms / Math.max(1, calls));
  };
  const timing = async <Result>(name: string, call: () => Promise<Result>, calls = (_: Result) => 1) => {
    const from = performance.now();
    const result = await call();
    note(name, performance.now() - from, calls(result));
    return result;
  };
  await times(count, () =>
    timing('a queue call', () => store.jobs.enqueue({ ...next(), origin: 'api', idempotencyKey: null })),
  );
  let ended = 0;
  while (ended < count) {
    const claimed = await timing(
      'a claim',
      () => store.jobs.claim({ ...CLAIM, limit: AT_ONCE }),
      (jobs) => jobs.length,
    );
    await Promise.all(
      claimed.map(async ({ job }) => {
        const held = heldOf(job);
        await stageRecords(store, held, 'replace', people({ a: job.id }));
        await timing('a publish', () => publish(store, held));
        ended += 1;
      }),
    );
  }
  for (let sent = 1; sent > 0; ) {
    const from = performance.now();
    sent = await deliverAll(store);
    if (sent > 0) note('a delivery', performance.now() - from, sent);
  }
  return Object.fromEntries(Object.entries(took).map(([name, all]) => [name, median(all)]));
}

/** Settles the due deliveries of all lanes. Returns their number. */
async function deliverAll(store: Store): Promise<number> {
  let sent = 0;
  for (const { teamId, webhookId } of await store.deliveries.lanes(HOLDER)) {
    const due = await store.deliveries.load({ teamId, webhookId, limits: LIMITS, ordered: false });
    const settlements = due.map((one) => settlement(one, 1, { state: 'delivered' }, OK));
    if (due.length > 0) await store.deliveries.settle({ settlements });
    sent += due.length;
  }
  return sent;
}

const LIMITS = { live: 100, retry: 100, replay: 100 };

async function times(count: number, call: () => Promise<unknown>): Promise<void> {
  let left = count;
  const one = async () => {
    while (left > 0) {
      left -= 1;
      await call();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/** The median duration of a call, in milliseconds. */
async function timed(count: number, call: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const from = performance.now();
    await call();
    took.push(performance.now() - from);
  }
  return median(took);
}

interface Usage {
  processorMs: number;
  statements: number;
  logBytes: number;
}

async function usage({ cluster, client }: Node & { client: pg.Client }): Promise<Usage> {
  const { rows } = await client.query(
    `select (select coalesce(sum(calls), 0) from pg_stat_statements)::float8 as statements,
            pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as "logBytes"`,
  );
  return { ...rows[0], processorMs: await processorMs(cluster) };
}

/** Processor time of a server with all its processes, also those that have ended. */
async function processorMs({ place }: Cluster): Promise<number> {
  const main = readFileSync(join(place, 'data/postmaster.pid'), 'utf8').split('\n')[0];
  let ticks = 0;
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [, parent] = fields;
    const [user, system, endedUser, endedSystem] = fields.slice(11, 15).map(Number) as [
      number,
      number,
      number,
      number,
    ];
    if (pid === main) ticks += user + system + endedUser + endedSystem;
    else if (parent === main) ticks += user + system;
  }
  return (ticks * 1_000) / TICKS_PER_SECOND;
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}
