/** Queueing jobs over HTTP, compared with a Fastify route with the same responses, and with other queues behind that route. */
import type { Benchmark, Contestant } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';
import { hammer } from './load.ts';
import { installPeers, type QueueServer, startQueueServer } from './peers.ts';
import { DURABILITY, startDurablePostgres } from './postgres.ts';
import { redisProgram, startRedis } from './redis.ts';
import { shuffled } from './shuffled.ts';
import { openTables } from './tables.ts';

const CONNECTIONS = [1, 16, 64, 256];
const REFUSED_AT = 64;
/** The duration of a measurement, and of the warm-up of each contestant. */
const FOR_MS = 800;
const WARM_MS = 400;
/** More than any contestant queues in a round. A call that finds no free workflow is an error. */
const WORKFLOWS_A_ROUND = 60_000;
const workflowOf = shuffled(WORKFLOWS_A_ROUND);
const FLOWHOOK = 'flowhook';

/** A server with the queue route, and a way to create workflows before they are called. */
interface Queueing extends QueueServer {
  headers?: Record<string, string>;
  prepare?(from: number, count: number): Promise<void>;
}

const benchmark: Benchmark = {
  about:
    'Each call of POST …/queue queues a job of another workflow, in random order, over a keep-alive ' +
    'connection, and is committed durably; no job runs meanwhile. "requests at N": calls per second with N ' +
    'clients; "p50" and "p99": the time within which half and 99 % of the calls end. "refused": second calls ' +
    'for workflows with an unfinished job. "overloaded": the share of calls refused with 503, which no other ' +
    `figure counts. Flowhook uses SQLite (synchronous=FULL) or PostgreSQL (${DURABILITY}), like pg-boss and ` +
    'graphile-worker, with pools of 10 connections. BullMQ uses Redis with an append-only file, synced before ' +
    'each response ("always") or once a second ("everysec", which may lose that second). The other queues are ' +
    'called through a Fastify route. The limit is that route without a queue: it stores nothing. After each ' +
    'round the jobs in the database are counted.',
  units: {
    ...Object.fromEntries(
      CONNECTIONS.flatMap((connections) => [
        [`requests at ${connections}`, '/s'],
        [`p50 at ${connections}`, 'ms'],
        [`p99 at ${connections}`, 'ms'],
      ]),
    ),
    [`refused at ${REFUSED_AT}`]: '/s',
    overloaded: '%',
  },
  limit: 'bare Fastify',
  async setUp({ full }) {
    const skipped: string[] = [];
    const stops: (() => Promise<void>)[] = [];
    const tearDown = async () => {
      for (const stop of stops.reverse()) await stop();
    };
    const contestants: Contestant[] = [];
    const add = async (name: string, starting: Promise<Queueing>) => {
      const queueing = await starting;
      stops.push(() => queueing.stop());
      contestants.push(await contestant(name, queueing));
    };
    try {
      await add('bare Fastify', startQueueServer('nothing'));
      await add(FLOWHOOK, startOurs());
      if (full) {
        installPeers();
        const postgres = await startDurablePostgres();
        stops.push(() => postgres.stop());
        await add('flowhook, PostgreSQL', startOurs(await postgres.makeDatabase('flowhook')));
        for (const peer of ['pg-boss', 'graphile-worker'] as const)
          await add(peer, startQueueServer(peer, await postgres.makeDatabase(peer.replace('-', '_'))));
        const program = redisProgram();
        if (program === undefined)
          skipped.push(
            'BullMQ, because there is no redis-server on the path and FLOWHOOK_BENCH_REDIS is not set.',
          );
        else
          for (const appendfsync of ['always', 'everysec'] as const) {
            const redis = await startRedis(program, appendfsync);
            stops.push(() => redis.stop());
            await add(`BullMQ, ${appendfsync}`, startQueueServer('bullmq', redis.socket));
          }
      }
    } catch (error) {
      await tearDown();
      throw error;
    }
    return { contestants, skipped, tearDown };
  },
};
export default benchmark;

/** @param database a PostgreSQL URL. Default: SQLite */
async function startOurs(database?: string): Promise<Queueing> {
  // A job that never ends takes the only slot, so that only queueing is measured.
  const files = { 'default/holder.yaml': 'source: { type: command, command: [sleep, "900"] }\n' };
  const { url, headers, databaseUrl, ...flowhook } = await startFlowhook(
    files,
    { FLOWHOOK_MAX_RUNNING_JOBS: '1' },
    database,
  );
  await flowhook.hold('holder');
  const tables = await openTables(databaseUrl);
  return {
    url,
    headers,
    prepare: (from, count) => tables.copyWorkflow({ like: 'holder', ids: 'w', from, count }),
    stored: async () => (await tables.jobs()) - 1,
    async stop() {
      await tables.close();
      await flowhook.stop();
    },
  };
}

async function contestant(name: string, queueing: Queueing): Promise<Contestant> {
  const { url, headers = {}, prepare, stored } = queueing;
  let next = 0;
  let prepared = 0;
  let accepted = 0;
  let calls = 0;
  let overloaded = 0;
  const call = (connections: number, forMs: number, call: () => number, expected: 200 | 400) =>
    hammer({
      url,
      connections,
      forMs,
      request: () => ({ method: 'POST', path: `/v1/workflows/w${workflowOf(call())}/queue`, headers }),
      onStatus(status) {
        calls += 1;
        if (status === 503) overloaded += 1;
        else if (status !== expected) throw new Error(`${name} returned ${status} instead of ${expected}`);
        else if (status === 200) accepted += 1;
        return status === expected;
      },
    });
  const queue = (connections: number, forMs: number) => call(connections, forMs, () => next++, 200);
  async function prepareRound(): Promise<void> {
    if (prepare === undefined) return;
    // In whole spans, because any workflow of a span may be called next.
    for (; prepared < next + WORKFLOWS_A_ROUND; prepared += WORKFLOWS_A_ROUND) {
      await prepare(prepared, WORKFLOWS_A_ROUND);
    }
  }
  await prepareRound();
  await queue(REFUSED_AT, WARM_MS);
  return {
    name,
    async *round() {
      await prepareRound();
      // All contestants prepare before any is measured.
      yield {};
      calls = 0;
      overloaded = 0;
      for (const connections of CONNECTIONS) {
        const { perSecond, p50Ms, p99Ms } = await queue(connections, FOR_MS);
        yield {
          [`requests at ${connections}`]: perSecond,
          [`p50 at ${connections}`]: p50Ms,
          [`p99 at ${connections}`]: p99Ms,
        };
      }
      let taken = 0;
      // The first workflows still have a job.
      const refused = await call(REFUSED_AT, FOR_MS, () => taken++ % REFUSED_AT, 400);
      const found = await stored();
      if (found !== accepted) throw new Error(`${name} accepted ${accepted} jobs and stored ${found}`);
      yield {
        [`refused at ${REFUSED_AT}`]: refused.perSecond,
        // Only Flowhook refuses for that reason.
        ...(prepare === undefined ? {} : { overloaded: (overloaded * 100) / calls }),
      };
    },
  };
}
