/** How fast a backlog goes out: deliveries that wait for paused webhooks, which are then resumed all at once. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Store } from '../src/store/store.ts';
import type { Flowhook } from './flowhook.ts';
import type { Sink } from './sink.ts';

export interface Drained {
  /** Between the first and the last receipt. */
  perSecond: number;
  /** Processor time of the sender for each of them, with all of its threads. Steadier than a rate. */
  processorUs: number;
}

/**
 * Fills the lanes of some webhooks evenly, lets them go, and waits for all of it.
 *
 * @param input.store the service's own database, opened here as well
 * @param input.atOnce how many are made at the same moment: on SQLite they are one transaction, on PostgreSQL each
 *   waits for a connection
 */
export async function drainBacklog(input: {
  flowhook: Flowhook;
  store: Store;
  sink: Sink;
  teamId: string;
  ids: readonly string[];
  deliveries: number;
  atOnce: number;
}): Promise<Drained> {
  const { flowhook, store, sink, teamId, ids, deliveries, atOnce } = input;
  const reason = 'The benchmark fills it';
  await Promise.all(ids.map((id) => store.webhooks.pause({ teamId, id, reason })));
  for (let made = 0; made < deliveries; made += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, deliveries - made) }, (_, n) => n + made);
    await Promise.all(some.map((n) => store.webhooks.test({ teamId, id: ids[n % ids.length] as string })));
  }
  await sink.take();
  const before = await flowhook.processorMs();
  await Promise.all(ids.map((id) => store.webhooks.resume({ teamId, id })));
  return drained(sink, deliveries, async () => (await flowhook.processorMs()) - before);
}

/** Waits until a number of requests has come. */
export async function drained(
  sink: Sink,
  deliveries: number,
  processorMs: () => Promise<number> | number,
): Promise<Drained> {
  while ((await sink.count()) < deliveries) await pause(50);
  const processorUs = ((await processorMs()) * 1_000) / deliveries;
  const { received, firstAt, lastAt } = await sink.take();
  return { perSecond: received / ((lastAt - firstAt) / 1_000), processorUs };
}
