/** Runs a chore on one of several nodes, by a lease; another node takes over when the lease expires. */
import { performance } from 'node:perf_hooks';
import type { Logger } from '../observe/log.ts';
import { Chore } from '../std/chore.ts';
import type { Clock } from '../std/clock.ts';
import type { Store } from './store.ts';

const LEASE_MS = 15_000;
const RENEW_EVERY_MS = 5_000;

type Work = (signal: AbortSignal) => Promise<void>;

export interface ChoreDeps {
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
}

/**
 * A chore that runs on one node at a time.
 *
 * @param input.name the name of its lease
 * @param input.failed the log message of a failure
 */
export function choreOnOneNode(
  input: ChoreDeps & { name: string; everyMs: number; failed: string; work: Work },
): Chore {
  const { log, random, everyMs, failed, work } = input;
  return new Chore({
    everyMs,
    random,
    work: onOneNode(input, work),
    failed: (err) => log.error({ err }, failed),
  });
}

/**
 * Wraps work so that it runs only while this node holds the lease. Work that takes longer than the lease may run on two
 * nodes at the same time, and must tolerate that.
 *
 * @param chore.elapsed milliseconds by a monotonic clock
 */
export function onOneNode(
  chore: { store: Pick<Store, 'instance'>; name: string; nodeId: string; elapsed?: Clock },
  work: Work,
): Work {
  const { store, name, nodeId, elapsed = () => performance.now() } = chore;
  let isOurs = false;
  let renewedMs = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    const nowMs = elapsed();
    if (nowMs - renewedMs >= RENEW_EVERY_MS) {
      isOurs = false;
      isOurs = await store.instance.lease({ name, nodeId, forMs: LEASE_MS });
      renewedMs = nowMs;
    }
    if (isOurs) await work(signal);
  };
}
