/** Runs a chore on one of several nodes, by a lease; another node takes over when that one is gone. */
import { performance } from 'node:perf_hooks';
import type { Clock } from '../std/clock.ts';
import type { Store } from './store.ts';

const LEASE_MS = 15_000;
const RENEW_EVERY_MS = 5_000;

type Work = (signal: AbortSignal) => Promise<void>;

/**
 * Wraps work so that it runs only while this node holds the lease. If it takes longer than the lease, two nodes may run
 * it at the same time for a while; it must tolerate that.
 *
 * @param chore.elapsed milliseconds by a monotonic clock
 */
export function onOneNode(
  chore: { store: Pick<Store, 'instance'>; name: string; nodeId: string; elapsed?: Clock },
  work: Work,
): Work {
  const { store, name, nodeId, elapsed = () => performance.now() } = chore;
  let isOurs = false;
  let askedMs = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    const nowMs = elapsed();
    if (nowMs - askedMs >= RENEW_EVERY_MS) {
      isOurs = false;
      isOurs = await store.instance.lease({ name, nodeId, forMs: LEASE_MS });
      askedMs = nowMs;
    }
    if (isOurs) await work(signal);
  };
}
