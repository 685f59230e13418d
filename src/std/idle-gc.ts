/**
 * Collects garbage when the process comes to rest, because V8 may keep the garbage of a start (14 of 118 MB) or of a load
 * (60 of 259 MB) as long as little happens. A collection blocks the event loop for 70 ms with the heap of a start, and
 * longer with a larger heap. So it runs only when the process is idle, and only if the heap has grown.
 */
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';

const LOOK_MS = 2_000;
/** The process counts as idle if the event loop is busy for at most this share of the time. */
const IDLE_SHARE = 0.1;
/** Number of consecutive checks that must find the process idle. */
const LOOKS = 3;
/** How many bytes the heap must have grown by since the last collection. */
const WORTH_BYTES = 16_777_216;

/**
 * @param options.busy returns the share of the time since its last call in which the event loop was busy, in [0, 1]
 * @param options.heap returns the bytes of memory that the heap takes
 */
export function collectAtRest({ busy = busyShare(), heap = heapBytes, collect = collectGarbage } = {}): {
  stop(): void;
} {
  let looks = 0;
  let kept = 0;
  const timer = setInterval(() => {
    looks = busy() > IDLE_SHARE ? 0 : looks + 1;
    if (looks !== LOOKS || heap() < kept + WORTH_BYTES) return;
    collect().then(
      () => {
        kept = heap();
      },
      // If Node does not allow the inspector (`--permission`), no garbage is collected and the memory stays in use.
      () => clearInterval(timer),
    );
  }, LOOK_MS).unref();
  return { stop: () => clearInterval(timer) };
}

function heapBytes(): number {
  return getHeapStatistics().total_physical_size;
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
