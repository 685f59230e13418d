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
 * Fills the lanes of some webhooks, lets them go, and waits for all of it.
 *
 * @param input.store the service's own database, opened here as well
 * @param input.fill makes the deliveries
 */
export async function drainBacklog(input: {
  flowhook: Flowhook;
  store: Store;
  sink: Sink;
  teamId: string;
  ids: readonly string[];
  deliveries: number;
  fill: () => Promise<void>;
}): Promise<Drained> {
  const { flowhook, store, sink, teamId, ids, deliveries, fill } = input;
  const reason = 'The benchmark fills it';
  await Promise.all(ids.map((id) => store.webhooks.pause({ teamId, id, reason })));
  await fill();
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
