/** Expires deliveries that have waited too long, and deletes old attempts, events, inspectors and removed webhooks. */
import { EXPIRE_MS } from '../model/delivery.ts';
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { onOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 60_000;
/** Removed webhooks are kept for a day: no transaction that began before the removal is open for longer. */
const FORGET_MS = 24 * 3_600_000;
const STEPS = { first: 50, max: 1_000 };

/**
 * @param options.keepAttemptsMs how long attempts are kept
 * @param options.keepEventsMs how long events are kept, with their ended deliveries
 */
export function webhookRetention(options: {
  store: Store;
  log: Logger;
  random: () => number;
  keepAttemptsMs: number;
  keepEventsMs: number;
  nodeId: string;
}): Chore {
  const { store, log, random, nodeId, keepAttemptsMs: attemptsMs, keepEventsMs: eventsMs } = options;
  const { deliveries, inspectors, webhooks } = store;
  return new Chore({
    everyMs: EVERY_MS,
    random,
    work: onOneNode({ store, name: 'deliveries.prune', nodeId }, async (signal) => {
      await inSteps((limit) => deliveries.expire({ olderMs: EXPIRE_MS, limit }), STEPS, signal);
      await inSteps((limit) => inspectors.prune({ limit }), STEPS, signal);
      await inSteps((limit) => deliveries.prune({ attemptsMs, eventsMs, limit }), STEPS, signal);
      await inSteps((limit) => webhooks.forget({ olderMs: FORGET_MS, limit }), STEPS, signal);
    }),
    failed: (err) => log.error({ err }, 'deliveries.not_pruned'),
  });
}
