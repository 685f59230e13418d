/**
 * Collects garbage once, when the process first comes to rest: V8 would keep what the start has left behind, 14 of
 * 118 MB. The event loop stands still meanwhile, 70 ms for the heap of a start and longer for a larger one; hence only
 * once, and only at rest.
 */
import { performance } from 'node:perf_hooks';

const LOOK_MS = 2_000;
/** At rest the event loop is busy for at most this share of the time. */
const RESTING = 0.1;
/** So many looks in a row must find it at rest. */
const LOOKS = 3;

/**
 * @param options.busy the share of the time since its last call in which the event loop was busy, in [0, 1]
 * @returns ends the looks
 */
export function collectOnceAtRest({ busy = busyShare(), collect = collectGarbage } = {}): { stop(): void } {
  let looks = 0;
  const timer = setInterval(() => {
    looks = busy() > RESTING ? 0 : looks + 1;
    if (looks < LOOKS) return;
    clearInterval(timer);
    // Where the inspector is not allowed (`--permission`) the memory stays in use.
    collect().catch(() => undefined);
  }, LOOK_MS).unref();
  return { stop: () => clearInterval(timer) };
}

function busyShare(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const before = last;
    last = performance.eventLoopUtilization();
    return performance.eventLoopUtilization(last, before).utilization;
  };
}

/** By the inspector: `gc` exists only with `--expose-gc`. */
export async function collectGarbage(): Promise<void> {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage');
  session.disconnect();
}
