/** Background work: called at intervals, and at once when nudged; in steps so small that nothing else waits for one. */
import { setTimeout as pause } from 'node:timers/promises';

/** Steps are sized to take about this long. */
const STEP_MS = 10;
/** The pause between two steps is as long as the step took, and at least this long. */
const MIN_PAUSE_MS = 5;

export class Chore {
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #poller: Poller;
  #ended = new AbortController();
  #ticking: Promise<void> | undefined;

  /**
   * @param input.work its signal is aborted when it should end early
   * @param input.failed is called with what `work` rejected with; it is tried again at the next poll
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
    this.#poller = new Poller({ everyMs, random, look: () => this.tick() });
  }

  start(): void {
    if (this.#ended.signal.aborted) this.#ended = new AbortController();
    this.#poller.start();
  }

  /** Resolves when the step under way has ended. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await this.#poller.stop();
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
 * Repeats a step until it answers that it is done, or the signal is aborted.
 *
 * @param step does at most `limit` things
 * @param size the `limit` of the first step, and the largest: in between it is adjusted so that a step takes 10 ms
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

/** A nudge is answered after this long at most. */
const MAX_REST_MS = 100;

/**
 * Looks at once when started, then every `everyMs` (± 20 %, so that several nodes do not poll in step). After a nudge
 * it looks as soon as it has rested for as long as the last look took, so that a flood of nudges takes at most half of
 * the time. Its timers do not keep the process alive.
 */
export class Poller {
  readonly #everyMs: number;
  readonly #random: () => number;
  readonly #look: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #started = false;
  #nudged = false;
  #restMs = 0;

  /** @param look must not reject */
  constructor(input: { everyMs: number; random: () => number; look: () => Promise<void> }) {
    this.#everyMs = input.everyMs;
    this.#random = input.random;
    this.#look = input.look;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#schedule(0);
  }

  /** Resolves when the look under way, if any, has ended. None follows. */
  async stop(): Promise<void> {
    this.#started = false;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  /** Makes it look soon. Any number of nudges during a look are one more look after it. */
  nudge(): void {
    if (this.#nudged || !this.#started) return;
    this.#nudged = true;
    if (this.#looking === undefined) this.#schedule(this.#restMs);
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#run(), ms);
    this.#timer.unref();
  }

  #run(): void {
    if (this.#looking !== undefined) return;
    this.#nudged = false;
    const startMs = performance.now();
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined;
      this.#restMs = Math.min(MAX_REST_MS, performance.now() - startMs);
      if (!this.#started) return;
      this.#schedule(this.#nudged ? this.#restMs : this.#everyMs * (0.8 + 0.4 * this.#random()));
    });
  }
}
