/**
 * Runs a chore on only one of several nodes, the node that holds a lease. When the lease expires, another node takes
 * over.
 */
import { performance } from 'node:perf_hooks';
import type { Logger } from '../observe/log.ts';
import { Chore } from '../std/chore.ts';
import type { Clock } from '../std/clock.ts';
import type { Store } from './store.ts';

const LEASE_MS = 15_000;
/** A lease is renewed this many times before it would expire. */
const RENEWALS = 3;

type Work = (signal: AbortSignal) => Promise<void>;

export interface ChoreDeps {
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
}

/**
 * Creates a chore that runs on one node at a time.
 *
 * @param input.name the name of the chore's lease
 * @param input.leaseMs how long another node waits before it takes over (default: 15 s)
 * @param input.failed the log message that reports a failure
 */
export function choreOnOneNode(
  input: ChoreDeps &
    Pick<ConstructorParameters<typeof Chore>[0], 'everyMs' | 'quietMs' | 'watch'> & {
      name: string;
      leaseMs?: number;
      failed: string;
      work: Work;
    },
): Chore {
  const { log, random, everyMs, quietMs, watch, failed, work } = input;
  return new Chore({
    everyMs,
    random,
    quietMs,
    watch,
    work: onOneNode(input, work),
    failed: (err) => log.error({ err }, failed),
  });
}

/**
 * Wraps work so that it runs only while this node holds the lease, which is renewed during the work. If it cannot be
 * renewed in time, two nodes may run the work at the same time, which the work must tolerate.
 *
 * @param chore.elapsed a monotonic clock in milliseconds
 */
export function onOneNode(
  chore: { store: Pick<Store, 'instance'>; name: string; nodeId: string; leaseMs?: number; elapsed?: Clock },
  work: Work,
): Work {
  const { store, name, nodeId, leaseMs: forMs = LEASE_MS, elapsed = () => performance.now() } = chore;
  const renewEveryMs = forMs / RENEWALS;
  let isOurs = false;
  let renewedMs = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    const nowMs = elapsed();
    if (nowMs - renewedMs >= renewEveryMs) {
      isOurs = false;
      isOurs = await store.instance.lease({ name, nodeId, forMs });
      renewedMs = nowMs;
    }
    if (!isOurs) return;
    const renew = () => {
      store.instance.lease({ name, nodeId, forMs }).catch(() => undefined);
    };
    const renewing = setInterval(renew, renewEveryMs).unref();
    try {
      await work(signal);
    } finally {
      clearInterval(renewing);
    }
  };
}
