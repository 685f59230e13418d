/** Background work that runs at intervals and after a nudge, in steps that are too short to delay anything else. */
import { setTimeout as pause } from 'node:timers/promises';

/** The duration of a step that `inSteps` aims for. */
const STEP_MS = 10;
/** The minimum pause between two steps. A pause lasts as long as the step before it, if that is longer. */
const MIN_PAUSE_MS = 5;

/** Work that runs at intervals. */
export class Chore {
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #poller: Poller;
  #ended = new AbortController();
  #ticking: Promise<void> | undefined;

  /**
   * @param input.work the work. Its signal is aborted when the work should end early
   * @param input.failed called with the error of `work`, which runs again at the next poll
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

  /** Resolves when the current step has ended. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await this.#poller.stop();
    await this.#ticking;
  }

  /** Starts the work now, or joins the work in progress. Never rejects. */
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
 * Repeats a step until the step returns `done`, or the signal is aborted.
 *
 * @param step processes at most `limit` items
 * @param size the first and the largest `limit`. The limit is adjusted so that a step takes 10 ms
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

/** The maximum delay between a nudge and the look that it causes. */
const MAX_REST_MS = 100;

/**
 * Calls `look` immediately when started, then every `everyMs` (± 20 %, so that several nodes do not poll in step).
 * After a nudge, the poller first rests for as long as the last look took, so that a flood of nudges takes at most half
 * of the time. The timers of the poller do not keep the process alive.
 */
export class Poller {
  readonly #everyMs: number;
  readonly #random: () => number;
  readonly #look: () => Promise<void>;
  readonly #watch: ((nudge: () => void) => () => void) | undefined;
  #unwatch: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #started = false;
  #nudged = false;
  #restMs = 0;

  /**
   * @param input.look must not reject
   * @param input.watch called at the start with a function `nudge`, which makes the poller look soon. Returns a
   *   function that unsubscribes
   */
  constructor(input: {
    everyMs: number;
    random: () => number;
    look: () => Promise<void>;
    watch?: (nudge: () => void) => () => void;
  }) {
    this.#everyMs = input.everyMs;
    this.#random = input.random;
    this.#look = input.look;
    this.#watch = input.watch;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#unwatch = this.#watch?.(() => this.nudge());
    this.#schedule(0);
  }

  /**
   * Stops the poller. Resolves when the current look, if any, has ended. The poller can be started again before that.
   */
  async stop(): Promise<void> {
    this.#started = false;
    this.#unwatch?.();
    this.#unwatch = undefined;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  /** Makes the poller look soon. Any number of nudges during a look cause only one more look. */
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
