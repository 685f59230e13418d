/**
 * Whether the service slows down with 10 and 100 times as many workflows, webhooks, old jobs and deliveries, or with
 * 100,000 idle teams. `growth-postgres.ts` is the same on PostgreSQL.
 */
import { multiply, type Past } from '../test/support/store/multiply.ts';
import { type Benchmark, median } from './benchmark.ts';
import { type Flowhook, startFlowhook } from './flowhook.ts';
import { hammer } from './load.ts';
import { DURABILITY, startDurablePostgres } from './postgres.ts';
import { type Sink, startSink } from './sink.ts';
import { openTables } from './tables.ts';

const PAST: Past = { workflows: 100, webhooks: 100, jobs: 1_000, deliveries: 5_000 };
const SIZES: { name: string; times: number; teams?: number }[] = [
  { name: '1 ×', times: 1 },
  { name: '10 ×', times: 10 },
  { name: '100 ×', times: 100 },
  { name: '100,000 idle teams', times: 1, teams: 100_000 },
];
/** Connections that queue and cancel jobs in a round. */
const CONNECTIONS = 16;
const FOR_MS = 1_500;
/** Jobs per round, one at a time. */
const RUNS = 5;
const TESTS = 30;
const READS = 20;
const DRAINED = 2_000;
const IDLE_MS = 12_000;

const FILES = {
  // Takes the only slot, so that queued jobs wait until they are canceled.
  'default/holder.yaml': 'source: { type: command, command: [sleep, "3600"] }\nlimits: { timeout: 2h }\n',
  // The workflow that is copied. It has a record, so that it publishes a version.
  'default/model.yaml': `source: { type: command, command: [echo, '{"id":"1","name":"Ada"}'] }\n`,
  'default/thousand.mts': `
export default async function* () {
  for (let i = 0; i < 1_000; i++) yield { id: String(i), name: 'Person Number ' + i, email: 'person' + i + '@example.com' };
}
`,
};

/** The benchmark on one of the databases. */
export const growth = (database: 'SQLite' | 'PostgreSQL'): Benchmark => ({
  about:
    `${database === 'SQLite' ? 'SQLite' : `PostgreSQL (${DURABILITY})`} with ${PAST.workflows} workflows and webhooks, ${PAST.jobs.toLocaleString('en')} finished jobs ` +
    `with their events, and ${PAST.deliveries.toLocaleString('en')} deliveries with their attempts, all of ` +
    'one team; then with 10 and 100 times as many, and with 100,000 other teams that do nothing, each with a ' +
    'workflow and a webhook. The measured jobs belong to the same workflows, and are ' +
    'canceled after they were queued. "idle minute": processor time of a minute without requests.',
  units: {
    'queued and canceled': '/s',
    'queued and canceled, each': 'ms of processor time',
    'queueing, p50': 'ms',
    'queueing, p99': 'ms',
    refused: '/s',
    'refused, each': 'ms of processor time',
    'a job claimed': 'ms',
    'a job run': 'ms',
    'event to receipt, p50': 'ms',
    'deliveries drained': '/s',
    'first page of jobs': 'ms',
    'first page of events': 'ms',
    'first page of workflows': 'ms',
    '1,000 records again': 'ms',
    'idle minute': 'ms of processor time',
    'start to ready': 'ms',
  },
  limit: '1 ×',
  rounds: 3,
  async setUp() {
    const sink = await startSink();
    const postgres = database === 'SQLite' ? undefined : await startDurablePostgres();
    const grown: Grown[] = [];
    for (const [at, size] of SIZES.entries())
      grown.push(await grow(size, sink, await postgres?.makeDatabase(`growth_${at}`)));
    return {
      contestants: grown.map((one) => ({ name: one.name, round: () => measure(one, sink) })),
      async tearDown() {
        sink.stop();
        for (const { flowhook } of grown) await flowhook.stop();
        await postgres?.stop();
      },
    };
  },
});
export default growth('SQLite');

interface Grown {
  name: string;
  past: Past;
  flowhook: Flowhook;
  teamId: string;
  /** The measured webhook. It belongs to the original workflow, not to a copy. */
  webhookId: string;
  holder: string;
}

/** Starts a service, lets it create the first rows, and copies these. */
async function grow(
  { name, times, teams = 0 }: (typeof SIZES)[number],
  sink: Sink,
  database: string | undefined,
): Promise<Grown> {
  const flowhook = await startFlowhook(FILES, { FLOWHOOK_MAX_RUNNING_JOBS: '1' }, database);
  const past: Past = {
    workflows: PAST.workflows * times,
    webhooks: PAST.webhooks * times,
    jobs: PAST.jobs * times,
    deliveries: PAST.deliveries * times,
    teams,
  };
  const subscribed = await post(flowhook, '/v1/integrations/webhooks/subscribe', {
    workflowId: 'model',
    webhookUrl: sink.url,
    // Only test events match, so that queued and canceled jobs cause no deliveries.
    events: ['workflow_failed'],
  });
  const webhookId = subscribed.headers.get('x-webhook-id') as string;
  await flowhook.runToItsEnd('model');
  await flowhook.runToItsEnd('thousand');
  await test(flowhook, webhookId);
  const tables = await openTables(flowhook.databaseUrl);
  const settled = async () =>
    (await tables.rows(`select team_id as id from delivery where state = 'delivered'`, []))[0]?.id;
  while ((await settled()) === undefined) await new Promise((later) => setTimeout(later, 20));
  const teamId = (await settled()) as string;
  const rows = async (sql: string, values: (string | number)[]) => {
    // Lets the server write in between.
    await new Promise((later) => setImmediate(later));
    return tables.rows(sql, values);
  };
  await multiply(rows, { past, model: { teamId, workflowId: 'model' } });
  await tables.settle();
  await tables.close();
  return { name, past, flowhook, teamId, webhookId, holder: await hold(flowhook) };
}

async function measure(grown: Grown, sink: Sink): Promise<Record<string, number>> {
  const { flowhook } = grown;
  const started = await flowhook.restart();
  const get = (path: string) => () => send(flowhook, 'GET', path);
  return {
    'start to ready': started.readyMs,
    'first page of jobs': await middle(get('/v1/jobs')),
    'first page of events': await middle(get('/v1/events')),
    'first page of workflows': await middle(get('/v1/workflows')),
    '1,000 records again': await middle(get('/v1/workflows/thousand/data')),
    ...(await queue(grown)),
    ...(await run(grown)),
    ...(await deliver(grown, sink)),
    'idle minute': await idle(grown),
  };
}

/** Queues and cancels jobs. Each connection uses other workflows, because a workflow accepts one job at a time. */
async function queue(grown: Grown): Promise<Record<string, number>> {
  const { flowhook, past } = grown;
  const took: number[] = [];
  const before = await flowhook.processorMs();
  const from = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, connection) => {
      for (let n = connection; performance.now() - from < FOR_MS; n = (n + CONNECTIONS) % past.workflows) {
        const sent = performance.now();
        const workflow = `past-${n + 1}`;
        const queued = await send(flowhook, 'POST', `/v1/workflows/${workflow}/queue`);
        took.push(performance.now() - sent);
        await send(flowhook, 'POST', `/v1/jobs/${queued.headers.get('x-job-id')}/cancel`);
      }
    }),
  );
  const seconds = (performance.now() - from) / 1_000;
  const between = await flowhook.processorMs();
  took.sort((a, b) => a - b);
  const at = (share: number) => took[Math.floor(took.length * share)] ?? Number.NaN;
  const { headers } = flowhook;
  const refused = await hammer({
    url: flowhook.url,
    connections: CONNECTIONS,
    forMs: FOR_MS,
    request: () => ({ method: 'POST', path: '/v1/workflows/holder/queue', headers }),
  });
  const after = await flowhook.processorMs();
  return {
    'queued and canceled': took.length / seconds,
    'queued and canceled, each': (between - before) / took.length,
    'queueing, p50': at(0.5),
    'queueing, p99': at(0.99),
    refused: refused.perSecond,
    'refused, each': (after - between) / ((refused.perSecond * FOR_MS) / 1_000),
  };
}

/** Runs jobs one at a time, while the slot is free. */
async function run(grown: Grown): Promise<Record<string, number>> {
  const { flowhook } = grown;
  await free(grown);
  const claimed: number[] = [];
  const took: number[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    const from = performance.now();
    const job = await flowhook.runToItsEnd('model');
    took.push(performance.now() - from);
    claimed.push(Date.parse(job.startedAt) - Date.parse(job.queuedAt));
  }
  grown.holder = await hold(flowhook);
  return { 'a job claimed': median(claimed), 'a job run': median(took) };
}

/** Sends deliveries one at a time, then a backlog. */
async function deliver(grown: Grown, sink: Sink): Promise<Record<string, number>> {
  const { flowhook, teamId, webhookId } = grown;
  await sink.take();
  for (let n = 1; n <= TESTS; n += 1) {
    await test(flowhook, webhookId);
    await arrived(sink, n);
  }
  const { latenciesMs } = await sink.take();
  const tables = await openTables(flowhook.databaseUrl);
  const now = Date.now();
  // New deliveries come with new events: nodes remember up to which event no new delivery is waiting.
  const copies = `with recursive copies (n) as (select 1 union all select n + 1 from copies where n < ${DRAINED})`;
  await tables.rows(
    `${copies}
     insert into event (team_id, id, sequence, type, workflow_id, job_id, body, created_at)
     select team_id, 'evt_' || ${now} || '_' || n, sequence + n, type, workflow_id, job_id, body, ${now}
     from copies cross join (select * from event where team_id = '${teamId}' order by sequence desc limit 1) newest`,
    [],
  );
  await tables.rows(
    `${copies}
     insert into delivery (team_id, id, webhook_id, event_sequence, state, next_at, created_at)
     select '${teamId}', 'dlv_' || ${now} || '_' || n, '${webhookId}',
       (select max(sequence) from event where team_id = '${teamId}') - n + 1, 'waiting', ${now}, ${now} from copies`,
    [],
  );
  await tables.rows(`update team set lanes_at = ${now} where id = '${teamId}'`, []);
  await tables.close();
  await arrived(sink, DRAINED);
  const { firstAt, lastAt } = await sink.take();
  return {
    'event to receipt, p50': latenciesMs[Math.floor(latenciesMs.length / 2)] ?? Number.NaN,
    'deliveries drained': DRAINED / ((lastAt - firstAt) / 1_000),
  };
}

/** Processor time of an idle minute. The holding job causes a heartbeat every ten seconds. */
async function idle({ flowhook }: Grown): Promise<number> {
  const before = await flowhook.processorMs();
  await new Promise((later) => setTimeout(later, IDLE_MS));
  return ((await flowhook.processorMs()) - before) * (60_000 / IDLE_MS);
}

async function middle(read: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < READS; n += 1) {
    const from = performance.now();
    await read();
    took.push(performance.now() - from);
  }
  return median(took);
}

/** Queues a job that never ends, waits until it runs, and returns its id. */
async function hold(flowhook: Flowhook): Promise<string> {
  await flowhook.hold('holder');
  const { jobs } = (await (
    await fetch(`${flowhook.url}/v1/jobs?workflowId=holder&limit=1`, { headers: flowhook.headers })
  ).json()) as { jobs: [{ id: string }] };
  return jobs[0].id;
}

/** Ends the job that takes the slot. */
async function free({ flowhook, holder }: Grown): Promise<void> {
  await send(flowhook, 'POST', `/v1/jobs/${holder}/cancel`);
  for (;;) {
    const response = await fetch(`${flowhook.url}/v1/jobs/${holder}`, { headers: flowhook.headers });
    if (((await response.json()) as { state: string }).state === 'canceled') return;
    await new Promise((later) => setTimeout(later, 20));
  }
}

async function arrived(sink: Sink, count: number): Promise<void> {
  while ((await sink.count()) < count) await new Promise((later) => setTimeout(later, 2));
}

function test(flowhook: Flowhook, webhookId: string): Promise<Response> {
  return send(flowhook, 'POST', `/v1/integrations/webhooks/${webhookId}/test`);
}

function post(flowhook: Flowhook, path: string, body: unknown): Promise<Response> {
  return send(flowhook, 'POST', path, JSON.stringify(body));
}

/** Reads the whole response. */
async function send(
  { url, headers }: Flowhook,
  method: 'GET' | 'POST',
  path: string,
  body?: string,
): Promise<Response> {
  const init =
    body === undefined ? { headers } : { headers: { ...headers, 'content-type': 'application/json' }, body };
  const response = await fetch(url + path, { method, ...init });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${method} ${path} returned ${response.status}: ${text}`);
  return response;
}
