/** Chores that one of several nodes does, and any other as soon as that one is gone. */
import { performance } from 'node:perf_hooks';
import type { Clock } from '../std/clock.ts';
import type { Store } from './store.ts';

/** After so long without a renewal another node may take it. */
const LEASE_MS = 15_000;
const ASK_EVERY_MS = 5_000;

type Work = (signal: AbortSignal) => Promise<void>;

/**
 * Makes work that is done only where this node has the chore. When it takes longer than the lease two nodes may do it
 * at once for a while: every step of it must bear that.
 *
 * @param chore.elapsed milliseconds by a clock that is never set back
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
    if (nowMs - askedMs >= ASK_EVERY_MS) {
      isOurs = false;
      isOurs = await store.instance.lease({ name, nodeId, forMs: LEASE_MS });
      askedMs = nowMs;
    }
    if (isOurs) await work(signal);
  };
}
