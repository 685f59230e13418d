/**
 * Gives back to the system what the start has left: V8 keeps it, of 118 MB some 14, until it is told to look. Once in
 * the life of a process, the first time that it comes to rest: the loop stands still meanwhile, some 70 ms for the heap
 * of a start, and as many times longer as the heap is larger.
 */
import { performance } from 'node:perf_hooks';

const LOOK_MS = 2_000;
/** The share of the time that the event loop may be busy with what goes on in a process at rest. */
const RESTING = 0.1;
/** Looks in a row that must find it so. */
const LOOKS = 3;

export class GiveBack {
  readonly #busy: () => number;
  readonly #collect: () => Promise<void>;
  #looks = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param options.busy the share of the time since it was last asked in which the event loop was busy
   * @param options.collect gives back what is not needed
   */
  constructor({ busy = busyShare(), collect = collectGarbage } = {}) {
    this.#busy = busy;
    this.#collect = collect;
  }

  start(): void {
    // Where nobody may inspect (`--permission`) it stays as it was without this.
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

/** The inspector's own: `gc` is there only for who asks for it on the command line. */
async function collectGarbage(): Promise<void> {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage');
  session.disconnect();
}
