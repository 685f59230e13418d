/** How soon an event arrives, on both databases: a part of `deliver` that takes a minute. */
import type { Benchmark, Contestant } from './benchmark.ts';
import { ENDPOINTS, LATENCIES, latencies, RATES, subscribeAll, WORKFLOWS } from './deliver-ours.ts';
import { startFlowhook } from './flowhook.ts';
import { DURABILITY, startDurablePostgres } from './postgres.ts';
import { type Sink, startSink } from './sink.ts';

const benchmark: Benchmark = {
  about:
    `Events for ${ENDPOINTS} endpoints in turn, at ${RATES.join(', ')} per second: the time from the timestamp of an event, when its transaction starts, to its receipt. ` +
    `Commits are durable (SQLite: synchronous=FULL; PostgreSQL: ${DURABILITY}).`,
  units: LATENCIES,
  limit: 'flowhook',
  rounds: 3,
  async setUp() {
    const sink = await startSink();
    const postgres = await startDurablePostgres();
    const ours = [
      await contestant('flowhook', sink),
      await contestant('flowhook, PostgreSQL', sink, await postgres.makeDatabase('latency')),
    ];
    return {
      contestants: ours,
      async tearDown() {
        for (const one of ours) await one.stop();
        await postgres.stop();
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
  const flowhook = await startFlowhook(WORKFLOWS, {}, database);
  const ids = await subscribeAll(flowhook, ENDPOINTS, (n) => `${sink.url}/good/${n}`);
  return {
    name,
    round: () => latencies({ flowhook, sink, ids, rates: RATES }),
    stop: () => flowhook.stop(),
  };
}
