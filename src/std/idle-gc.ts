/**
 * Collects garbage once, when the process is first idle, because V8 would otherwise keep the garbage of the start (14
 * of 118 MB). The collection blocks the event loop for 70 ms with the heap of a start, and longer with a larger heap.
 * So it runs only once, and only when the process is idle.
 */
import { performance } from 'node:perf_hooks';

const LOOK_MS = 2_000;
/** The process counts as idle if the event loop is busy for at most this share of the time. */
const IDLE_SHARE = 0.1;
/** Number of consecutive checks that must find the process idle. */
const LOOKS = 3;

/** @param options.busy returns the share of the time since its last call in which the event loop was busy, in [0, 1] */
export function collectOnceAtRest({ busy = busyShare(), collect = collectGarbage } = {}): { stop(): void } {
  let looks = 0;
  const timer = setInterval(() => {
    looks = busy() > IDLE_SHARE ? 0 : looks + 1;
    if (looks < LOOKS) return;
    clearInterval(timer);
    // If Node does not allow the inspector (`--permission`), no garbage is collected and the memory stays in use.
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

/** Collects garbage with the inspector, because the function `gc` exists only with `--expose-gc`. */
export async function collectGarbage(): Promise<void> {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage');
  session.disconnect();
}
