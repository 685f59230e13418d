/** Work in the background that is looked at now and then, and done in steps so small that nobody waits for one. */
import { setTimeout as pause } from 'node:timers/promises';
import { Wake } from './wake.ts';

/** A step is as large as what takes about this long. */
const STEP_MS = 10;
/** Between two steps others have their turn for as long as a step took, and at least this long. */
const MIN_PAUSE_MS = 5;

export class Chore {
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #wake: Wake;
  #ended = new AbortController();
  #ticking: Promise<void> | undefined;

  /**
   * @param input.work is told by its signal when it should end early
   * @param input.failed hears what `work` rejected with; it is tried again at the next look
   */
  constructor(input: {
    everyMs: number;
    random: () => number;
    work: (signal: AbortSignal) => Promise<void>;
    failed: (error: unknown) => void;
  }) {
    this.#work = input.work;
    this.#failed = input.failed;
    const { everyMs, random } = input;
    this.#wake = new Wake({ everyMs, random, look: () => this.tick() });
  }

  start(): void {
    if (this.#ended.signal.aborted) this.#ended = new AbortController();
    this.#wake.start();
  }

  /** Resolves when the step under way has ended. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await this.#wake.stop();
    await this.#ticking;
  }

  /** Works now, or joins the work under way. Never rejects. */
  tick(): Promise<void> {
    this.#ticking ??= this.#work(this.#ended.signal)
      .catch(this.#failed)
      .finally(() => {
        this.#ticking = undefined;
      });
    return this.#ticking;
  }
}

/**
 * Does something in steps until one answers that it is done, or the signal ends it.
 *
 * @param step does at most `limit` things
 * @param size the first step's, and the largest: in between it is adjusted to what takes about 10 ms
 */
export async function inSteps(
  step: (limit: number) => Promise<{ done: boolean }>,
  size: { first: number; max: number },
  signal: AbortSignal,
): Promise<void> {
  for (let limit = size.first; !signal.aborted; ) {
    const fromMs = performance.now();
    const { done } = await step(limit);
    if (done) return;
    const tookMs = performance.now() - fromMs;
    limit = Math.max(1, Math.min(size.max, Math.round((limit * STEP_MS) / tookMs), limit * 2));
    await pause(Math.max(tookMs, MIN_PAUSE_MS), undefined, { signal }).catch(() => undefined);
  }
}
