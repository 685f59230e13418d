/** Filters: what deciding for many webhooks costs queue calls, and how soon a filtered event arrives. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Benchmark, Contestant } from './benchmark.ts';
import { post } from './deliver-latency.ts';
import { startFlowhook } from './flowhook.ts';
import { OpenLoop } from './open-loop.ts';
import { DURABILITY, onBoth } from './postgres.ts';
import { type Sink, startSink } from './sink.ts';
import { openTables, type Tables } from './tables.ts';

const FILTERS = 100;
const RECORDS = 100_000;
/** Queue calls per second. */
const RATE = 200;
const CONNECTIONS = 16;
/** The duration of a measurement without decisions. There is one before each version and one after it. */
const UNDISTURBED_MS = 6_000;
/** More than are queued in a round. */
const WORKFLOWS_A_ROUND = 40_000;
/** Versions with one difference, for the time until receipt. */
const TICKS = 100;
const TICK_MS = 30;

const benchmark: Benchmark = {
  about:
    `A version with ${RECORDS.toLocaleString('en')} differences is published in each round, and decided for ${FILTERS} webhooks, each with a filter such as ` +
    `fallsBelow(previous.price, record.price, 50). "queue p99": the time within which 99 % of queue calls end, at ${RATE} per second, ` +
    'while these decisions are pending ("deciding"), after such a version of a workflow without webhooks ("published"), and at rest ("undisturbed"). "evaluations": of filters, per second, ' +
    'beside these calls. "to receipt": the time from the timestamp of an event about one difference, when its transaction starts, to its receipt, ' +
    `by a webhook without a filter and by one with a filter that reads the record. Commits are durable (SQLite: synchronous=FULL; PostgreSQL: ${DURABILITY}).`,
  units: {
    'queue p50, undisturbed': 'ms',
    'queue p50, published': 'ms',
    'queue p50, deciding': 'ms',
    'queue p99, undisturbed': 'ms',
    'queue p99, published': 'ms',
    'queue p99, deciding': 'ms',
    'queue p99, ratio': '',
    evaluations: '/s',
    'to receipt p50, no filter': 'ms',
    'to receipt p50, filter': 'ms',
    'to receipt p99, no filter': 'ms',
    'to receipt p99, filter': 'ms',
  },
  rounds: 4,
  async setUp({ full }) {
    const sink = await startSink();
    const both = await onBoth(full, (name, database) =>
      contestant(name, sink.under(database === undefined ? '/sqlite' : '/postgres'), database),
    );
    return {
      ...both,
      async tearDown() {
        await both.tearDown();
        sink.stop();
      },
    };
  },
};
export default benchmark;

/** @param database a PostgreSQL URL. Default: SQLite */
async function contestant(
  name: string,
  sink: Sink,
  database?: string,
): Promise<Contestant & { stop(): Promise<void> }> {
  // A job that never ends takes a slot, so that only queueing is measured.
  const flowhook = await startFlowhook(
    {
      'default/holder.yaml': 'source: { type: command, command: [sleep, "900"] }\n',
      'default/shop.yaml': 'source: { type: push }\n',
      'default/plain.yaml': 'source: { type: push }\n',
      'default/tick.yaml': 'source: { type: push }\n',
    },
    { FLOWHOOK_MAX_RUNNING_JOBS: '1' },
    database,
  );
  await flowhook.hold('holder');
  const tables = await openTables(flowhook.databaseUrl);
  const send = async (method: string, path: string, type: string, body: string) => {
    const headers = { ...flowhook.headers, 'content-type': type };
    const response = await fetch(flowhook.url + path, { method, headers, body });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  };
  const subscribe = (workflowId: string, path: string, filter: string | null) =>
    send(
      'POST',
      '/v1/integrations/webhooks',
      'application/json',
      JSON.stringify({ workflowId, webhookUrl: sink.url + path, events: ['workflow_data_change'], filter }),
    );
  for (let n = 0; n < FILTERS; n++) {
    await subscribe('shop', `/filters/${n}`, `fallsBelow(previous.price, record.price, ${n})`);
  }
  await subscribe('tick', '/none', null);
  await subscribe('tick', '/filter', 'record.price != previous.price');
  const push = (workflowId: string, lines: string) =>
    send('POST', `/v1/workflows/${workflowId}/push`, 'application/x-ndjson', lines);

  let queued = 0;
  let version = 0;
  let prepared = 0;
  async function queueing(until: () => Promise<void>): Promise<number[]> {
    const took: number[] = [];
    const loop = new OpenLoop({
      url: flowhook.url,
      maxConnections: CONNECTIONS,
      next: () => post({ url: `${flowhook.url}/v1/workflows/w${queued++}/queue`, headers: flowhook.headers }),
      onResponse({ kind, status, ms }) {
        if (status !== 200) throw new Error(`${kind} returned ${status}`);
        took.push(ms);
      },
    });
    await loop.warm();
    let isOver = false;
    const over = until().finally(() => {
      isOver = true;
    });
    while (!isOver) await loop.at(RATE, 500);
    await over;
    await loop.drained();
    loop.end();
    return took;
  }
  let shown = 0;
  const pushAll = (workflowId: string) => {
    shown += 1;
    const lines = Array.from(
      { length: RECORDS },
      (_, n) => `{"id":"r${n}","price":${(n * 7 + shown * 37) % 101}}`,
    );
    return push(workflowId, lines.join('\n'));
  };
  for (const workflowId of ['shop', 'plain']) await pushAll(workflowId);
  await push('tick', '{"id":"a","price":0}');
  await decided(tables);
  return {
    name,
    async round() {
      await tables.copyWorkflow({ like: 'holder', ids: 'w', from: prepared, count: WORKFLOWS_A_ROUND });
      queued = prepared;
      prepared += WORKFLOWS_A_ROUND;
      const figures: Record<string, number> = await receipts();
      const before = await queueing(() => pause(UNDISTURBED_MS).then(() => undefined));
      await pushAll('plain');
      const published = await queueing(() => pause(UNDISTURBED_MS).then(() => undefined));
      await pushAll('shop');
      const from = performance.now();
      const beside = await queueing(() => decided(tables));
      const seconds = (performance.now() - from) / 1_000;
      await requireExamined(tables);
      const after = await queueing(() => pause(UNDISTURBED_MS).then(() => undefined));
      const undisturbed = [...before, ...after];
      for (const [percent, share] of [
        ['p50', 0.5],
        ['p99', 0.99],
      ] as const) {
        figures[`queue ${percent}, undisturbed`] = at(undisturbed, share);
        figures[`queue ${percent}, published`] = at(published, share);
        figures[`queue ${percent}, deciding`] = at(beside, share);
      }
      figures['queue p99, ratio'] = at(beside, 0.99) / at(undisturbed, 0.99);
      figures.evaluations = (RECORDS * FILTERS) / seconds;
      return figures;
    },
    async stop() {
      await tables.close();
      await flowhook.stop();
    },
  };

  async function receipts(): Promise<Record<string, number>> {
    await sink.take();
    for (let n = 1; n <= TICKS; n++) {
      version += 1;
      await push('tick', `{"id":"a","price":${version}}`);
      await pause(TICK_MS);
    }
    while ((await sink.count()) < 2 * TICKS) await pause(50);
    const [none, filtered] = [await sink.under('/none').take(), await sink.under('/filter').take()];
    return {
      'to receipt p50, no filter': at(none.latenciesMs, 0.5),
      'to receipt p99, no filter': at(none.latenciesMs, 0.99),
      'to receipt p50, filter': at(filtered.latenciesMs, 0.5),
      'to receipt p99, filter': at(filtered.latenciesMs, 0.99),
    };
  }
}

/** @throws Error if the newest decisions were not made from all differences */
async function requireExamined(tables: Tables): Promise<void> {
  const rows = await tables.rows(
    'select examined from decision where examined > 1 order by event_sequence desc limit ?',
    [FILTERS],
  );
  if (rows.length < FILTERS || rows.some(({ examined }) => Number(examined) !== RECORDS))
    throw new Error('Not all differences were examined');
}

/** Resolves when no decision is pending. */
async function decided(tables: Tables): Promise<void> {
  for (;;) {
    const rows = await tables.rows(`select 1 as one from decision where state = 'pending' limit 1`, []);
    if (rows.length === 0) return;
    await pause(100);
  }
}

function at(took: readonly number[], share: number): number {
  const sorted = took.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
