/** How fast a backlog is sent: deliveries wait for paused webhooks, which are then resumed together. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Store } from '../src/store/store.ts';
import type { Flowhook } from './flowhook.ts';
import type { Sink } from './sink.ts';

export interface Drained {
  /** Between the first and the last receipt. */
  perSecond: number;
  /** Processor time of the sender per delivery, with all of its threads. Steadier than a rate. */
  processorUs: number;
}

/**
 * Fills the lanes of some webhooks, resumes the webhooks, and waits for all deliveries.
 *
 * @param input.store the database of the service, opened a second time
 * @param input.fill creates the deliveries
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

/** Waits for a number of requests. */
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
