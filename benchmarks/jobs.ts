/** Jobs from the call that queues them to their end, and many schedules that are due at the same moment. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { type Benchmark, type Contestant, median } from './benchmark.ts';
import { type Flowhook, startFlowhook } from './flowhook.ts';
import { startDurablePostgres } from './postgres.ts';
import { whileQueueing } from './queueing.ts';
import { type Spawner, startSpawner } from './spawner.ts';
import { openTables } from './tables.ts';

const KINDS = ['command', 'module', 'http'] as const;
type Kind = (typeof KINDS)[number];
/** Starts measured in a round, one at a time. */
const STARTS = 6;
const JOBS: Record<Kind, number> = { command: 40, module: 16, http: 16 };
const SCHEDULES = 10_000;
/** Fewer, because on PostgreSQL each needs its own commit. */
const SCHEDULES_ON_POSTGRES = 1_000;
/** Child processes at the same time: Flowhook's default. */
const AT_ONCE = Math.max(3, availableParallelism());
/** From creating the workflows until they are due. */
const AHEAD_MS = 3_000;
/** More than a round has time for. */
const CALLS_A_ROUND = 10_000;
/** How long calls are measured alone. */
const ALONE_MS = 1_000;

/** Bash has the time built in; starting another program would be measured too. */
const SHELL = String.raw`echo "{\"id\":\"1\",\"name\":\"$EPOCHREALTIME\"}"`;
const MODULE = `
export default async function* () {
  yield { id: '1', name: String((performance.timeOrigin + performance.now()) / 1_000) };
}
`;
/** Due in another year: the benchmark writes the time into the row. */
const SCHEDULED = 'schedule: { cron: "0 0 1 1 *" }\nsource: { type: command, command: ["true"] }\n';
const HOLDER = 'source: { type: command, command: [sleep, "900"] }\n';

/** The name of the figure for each kind. */
const ENDED = { command: 'commands', module: 'modules', http: 'http sources' } as const;

const benchmark: Benchmark = {
  about:
    'Jobs with one record each, of a command (an echo in a shell), a module, and an HTTP source on the same ' +
    `machine. "first line": the time from POST …/queue to the first line of the user's code, or to the ` +
    `request of an HTTP source, for ${STARTS} jobs one at a time on an idle server. "commands", "modules" and ` +
    `"http sources": published jobs per second, with ${JOBS.command} commands or ${JOBS.module} others queued ` +
    `together; ${AT_ONCE} of them run at a time. The limit starts bash, or node with a file that does the ` +
    'same, and reads its output. "claimed": the time from the commit that queues a job to the commit that ' +
    `claims it, by the clock of the database. "queued late": ${SCHEDULES.toLocaleString('en')} workflows ` +
    'become due at the same moment, while the only slot for running jobs is taken; the figure is the delay ' +
    'until each job is queued. "queue call": a call for another workflow every 20 ms, before that moment ' +
    '("alone") and until all are queued ("meanwhile").',
  units: {
    ...Object.fromEntries(
      KINDS.flatMap((kind) => [
        [`${kind}, first line, median`, 'ms'],
        [`${kind}, first line, slowest`, 'ms'],
        [ENDED[kind], '/s'],
      ]),
    ),
    'claimed, median': 'ms',
    'claimed, slowest': 'ms',
    'queued late, median': 'ms',
    'queued late, slowest': 'ms',
    'queue call alone, p50': 'ms',
    'queue call alone, p99': 'ms',
    'queue call meanwhile, p50': 'ms',
    'queue call meanwhile, p99': 'ms',
  },
  limit: 'bare spawn',
  async setUp({ full }) {
    const contestants: Contestant[] = [];
    const stops: (() => Promise<unknown>)[] = [];
    const tearDown = async () => {
      for (const stop of stops.reverse()) await stop();
    };
    try {
      const origin = await startOrigin();
      stops.push(() => origin.stop());
      const spawner = startSpawner();
      stops.push(() => spawner.stop());
      const flowhook = await startFlowhook(definitions(origin.url), { FLOWHOOK_ALLOW_NETWORKS: 'loopback' });
      stops.push(() => flowhook.stop());
      for (const kind of KINDS) for (let n = 0; n < JOBS[kind]; n++) await flowhook.applied(kind + n);
      contestants.push(
        { name: 'bare spawn', round: () => spawnBare(spawner, flowhook.directory, origin) },
        { name: 'flowhook', round: () => runJobs(flowhook, origin) },
      );
      const addSchedules = async (count: number, database?: string) => {
        const { round, stop } = await startSchedules(count, database);
        stops.push(stop);
        const where = database === undefined ? '' : ', PostgreSQL';
        contestants.push({ name: `${count.toLocaleString('en')} schedules${where}`, round });
      };
      await addSchedules(SCHEDULES);
      if (full) {
        const postgres = await startDurablePostgres();
        stops.push(() => postgres.stop());
        await addSchedules(SCHEDULES_ON_POSTGRES, await postgres.makeDatabase('flowhook'));
      }
    } catch (error) {
      await tearDown();
      throw error;
    }
    return { contestants, tearDown };
  },
};
export default benchmark;

interface Origin {
  url: string;
  /** The time of the last request, in epoch milliseconds. */
  readonly requestedAt: number;
  stop(): Promise<void>;
}

async function startOrigin(): Promise<Origin> {
  let requestedAt = 0;
  const server = createServer((_request, response) => {
    requestedAt = now();
    response.setHeader('content-type', 'application/json').end('[{"id":"1","name":"Ada"}]');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    get requestedAt() {
      return requestedAt;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Workflows of each kind, and the programs that the limit runs. */
function definitions(url: string): Record<string, string> {
  const files = (count: number, of: (n: number) => [path: string, text: string]) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => of(n)));
  const command = `source:\n  type: command\n  command: [bash, -c, ${JSON.stringify(SHELL)}]\n`;
  return {
    ...files(JOBS.command, (n) => [`default/command${n}.yaml`, command]),
    ...files(JOBS.module, (n) => [`default/module${n}.mts`, MODULE]),
    ...files(JOBS.http, (n) => [`default/http${n}.yaml`, `source: { type: http, url: "${url}" }\n`]),
    '../bare/module.mjs': `${MODULE.replace('default ', '').replace('* ()', '* records()')}
for await (const record of records()) console.log(JSON.stringify(record));`,
    '../bare/http.mjs': `for (const record of await (await fetch('${url}')).json()) console.log(JSON.stringify(record));`,
  };
}

/** The limit: the same child processes without the service. */
async function spawnBare(
  spawner: Spawner,
  directory: string,
  origin: Origin,
): Promise<Record<string, number>> {
  const argumentsOf: Record<Kind, string[]> = {
    command: ['bash', '-c', SHELL],
    module: [process.execPath, join(directory, 'bare', 'module.mjs')],
    http: [process.execPath, join(directory, 'bare', 'http.mjs')],
  };
  const figures: Record<string, number> = {};
  for (const kind of KINDS) {
    const argv = argumentsOf[kind];
    const lines: number[] = [];
    for (let n = 0; n < STARTS; n++) {
      const { fromMs, output } = await spawner.run({ argv, times: 1, atOnce: 1 });
      lines.push(firstLine(kind, JSON.parse(output), origin) - fromMs);
    }
    figures[`${kind}, first line, median`] = median(lines);
    figures[`${kind}, first line, slowest`] = Math.max(...lines);
    const { tookMs } = await spawner.run({ argv, times: JOBS[kind], atOnce: AT_ONCE });
    figures[ENDED[kind]] = (JOBS[kind] * 1_000) / tookMs;
  }
  return figures;
}

async function runJobs(flowhook: Flowhook, origin: Origin): Promise<Record<string, number>> {
  const figures: Record<string, number> = {};
  const claims: number[] = [];
  for (const kind of KINDS) {
    const lines: number[] = [];
    for (let n = 0; n < STARTS; n++) {
      const from = now();
      const { state, error, startedAt, queuedAt } = await flowhook.runToItsEnd(`${kind}0`);
      if (state !== 'finished') throw new Error(error);
      const [record] = (await call(flowhook, `/v1/workflows/${kind}0/data`)) as [{ name: string }];
      lines.push(firstLine(kind, record, origin) - from);
      claims.push(Date.parse(startedAt) - Date.parse(queuedAt));
    }
    figures[`${kind}, first line, median`] = median(lines);
    figures[`${kind}, first line, slowest`] = Math.max(...lines);
    figures[ENDED[kind]] = (JOBS[kind] * 1_000) / (await runAtOnce(flowhook, kind));
  }
  figures['claimed, median'] = median(claims);
  figures['claimed, slowest'] = Math.max(...claims);
  return figures;
}

/** Returns how long all of them took, in milliseconds. */
async function runAtOnce(flowhook: Flowhook, kind: Kind): Promise<number> {
  const from = now();
  await Promise.all(
    Array.from({ length: JOBS[kind] }, (_, n) => call(flowhook, `/v1/workflows/${kind}${n}/queue`, 'POST')),
  );
  for (;;) {
    const unfinished = (await call(flowhook, '/v1/jobs?state=queued,running,retrying&limit=1')) as Jobs;
    if (unfinished.jobs.length === 0) break;
    // Not more often: each request uses about as much processor time as a job.
    await later(100);
  }
  const { jobs } = (await call(flowhook, `/v1/jobs?limit=${JOBS[kind]}`)) as Jobs;
  const other = jobs.find(({ state, workflowId }) => state !== 'finished' || !workflowId.startsWith(kind));
  if (other !== undefined) throw new Error(`${other.workflowId}: ${other.state}, ${other.error}`);
  return Math.max(...jobs.map(({ finishedAt }) => Date.parse(finishedAt))) - from;
}

interface Jobs {
  jobs: { workflowId: string; state: string; error: string | null; finishedAt: string }[];
}

async function call({ url, headers }: Flowhook, path: string, method = 'GET'): Promise<unknown> {
  const response = await fetch(url + path, { method, headers });
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** When the user's code started, in epoch milliseconds: from its record, or for HTTP sources from the server. */
function firstLine(kind: Kind, { name }: { name: string }, origin: Origin): number {
  // bash prints seconds, with the decimal separator of the locale.
  return kind === 'http' ? origin.requestedAt : Number(name.replace(',', '.')) * 1_000;
}

/** Epoch milliseconds with fractions, comparable between processes. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

/** @param database a PostgreSQL URL. Default: SQLite */
async function startSchedules(
  count: number,
  database?: string,
): Promise<{ round(): Promise<Record<string, number>>; stop(): Promise<void> }> {
  const flowhook = await startFlowhook(
    { 'default/holder.yaml': HOLDER, 'default/scheduled.yaml': SCHEDULED },
    { FLOWHOOK_MAX_RUNNING_JOBS: '1' },
    database,
  );
  await flowhook.hold('holder');
  const tables = await openTables(flowhook.databaseUrl);
  const calls = { next: 0 };
  let rounds = 0;
  let made = 0;
  return {
    async round() {
      const ids = `round${rounds++}-`;
      const dueAt = Date.now() + AHEAD_MS;
      await tables.copyWorkflow({ like: 'holder', ids: 'w', from: made, count: CALLS_A_ROUND });
      calls.next = made;
      made += CALLS_A_ROUND;
      await tables.copyWorkflow({ like: 'scheduled', ids, from: 0, count, nextRunAt: dueAt });
      await later(dueAt - ALONE_MS - Date.now());
      const alone = await whileQueueing(flowhook, calls, () => later(dueAt - Date.now()));
      if (alone.seconds * 1_000 < ALONE_MS / 2) throw new Error('Making the workflows took too long');
      const meanwhile = await whileQueueing(flowhook, calls, async () => {
        for (;;) {
          const times = await tables.queuedAt(ids);
          if (times.length === count) return times.map((at) => at - dueAt);
          await later(100);
        }
      });
      return {
        'queued late, median': median(meanwhile.result),
        'queued late, slowest': Math.max(...meanwhile.result),
        'queue call alone, p50': alone.p50Ms,
        'queue call alone, p99': alone.p99Ms,
        'queue call meanwhile, p50': meanwhile.p50Ms,
        'queue call meanwhile, p99': meanwhile.p99Ms,
      };
    },
    async stop() {
      await tables.close();
      await flowhook.stop();
    },
  };
}
