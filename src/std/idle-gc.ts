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

export class IdleGc {
  readonly #busy: () => number;
  readonly #collect: () => Promise<void>;
  #looks = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param options.busy the share of the time since its last call in which the event loop was busy, in [0, 1]
   * @param options.collect collects garbage
   */
  constructor({ busy = busyShare(), collect = collectGarbage } = {}) {
    this.#busy = busy;
    this.#collect = collect;
  }

  start(): void {
    // Where the inspector is not allowed (`--permission`) the memory stays in use.
    this.#timer ??= setInterval(() => void this.tick().catch(() => this.stop()), LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks once. */
  async tick(): Promise<void> {
    this.#looks = this.#busy() > RESTING ? 0 : this.#looks + 1;
    if (this.#looks < LOOKS) return;
    this.stop();
    await this.#collect();
  }
}

function busyShare(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}

/** By the inspector: `gc` exists only with `--expose-gc`. */
async function collectGarbage(): Promise<void> {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage');
  session.disconnect();
}
