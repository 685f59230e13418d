/** Expires deliveries that have waited too long, and deletes old attempts, events, inspectors and removed webhooks. */
import { EXPIRE_MS } from '../model/delivery.ts';
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';

const EVERY_MS = 60_000;
/** Removed webhooks are kept for a day: no transaction that began before the removal is open for longer. */
const FORGET_MS = 24 * 3_600_000;
const STEPS = { first: 50, max: 1_000 };

/**
 * @param options.keepAttemptsMs how long attempts are kept
 * @param options.keepEventsMs how long events are kept, with their ended deliveries
 */
export function webhookRetention(
  options: ChoreDeps & { keepAttemptsMs: number; keepEventsMs: number },
): Chore {
  const { keepAttemptsMs: attemptsMs, keepEventsMs: eventsMs } = options;
  const { deliveries, inspectors, webhooks } = options.store;
  return choreOnOneNode({
    ...options,
    name: 'deliveries.prune',
    everyMs: EVERY_MS,
    failed: 'deliveries.not_pruned',
    async work(signal) {
      await inSteps((limit) => deliveries.expire({ olderMs: EXPIRE_MS, limit }), STEPS, signal);
      await inSteps((limit) => inspectors.prune({ limit }), STEPS, signal);
      await inSteps((limit) => deliveries.prune({ attemptsMs, eventsMs, limit }), STEPS, signal);
      await inSteps((limit) => webhooks.prune({ olderMs: FORGET_MS, limit }), STEPS, signal);
    },
  });
}
