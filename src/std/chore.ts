/** Background work that runs at intervals and after a nudge, in steps that are too short to delay anything else. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from './clock.ts';

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
   * @param input.quietMs see `Poller`
   * @param input.watch see `Poller`
   */
  constructor(input: {
    everyMs: number;
    random: () => number;
    work: (signal: AbortSignal) => Promise<void>;
    failed: (error: unknown) => void;
    quietMs?: QuietMs | undefined;
    watch?: Watch | undefined;
  }) {
    const { work, failed, ...polling } = input;
    this.#work = work;
    this.#failed = failed;
    this.#poller = new Poller({ ...polling, look: () => this.tick() });
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
 * @param step processes at most `limit` items, and receives the place `next` that the last step returned
 * @param size the first and the largest `limit`. The limit is adjusted so that a step takes 10 ms
 */
export async function inSteps<Place = never>(
  step: (limit: number, after?: Place) => Promise<{ done: boolean; next?: Place | undefined }>,
  size: { first: number; max: number },
  signal: AbortSignal,
): Promise<void> {
  let after: Place | undefined;
  for (let limit = size.first; !signal.aborted; ) {
    const fromMs = performance.now();
    const { done, next } = await step(limit, after);
    if (done) return;
    after = next;
    const tookMs = performance.now() - fromMs;
    limit = Math.max(1, Math.min(size.max, Math.round((limit * STEP_MS) / tookMs), limit * 2));
    await pause(Math.max(tookMs, MIN_PAUSE_MS), undefined, { signal }).catch(() => undefined);
  }
}

/** Returns how long nothing will be due, in milliseconds. Zero or less if something is due, or if that is unknown. */
type QuietMs = () => Promise<number>;

/**
 * Called at the start. Reports later changes to the poller, and returns a function that unsubscribes.
 */
type Watch = (poller: Pick<Poller, 'nudge' | 'wake'>) => () => void;

/** The maximum delay between a nudge and the look that it causes. */
const MAX_REST_MS = 100;
/**
 * The longest sleep. A sleeping poller looks after this time even if nobody wakes it, because the report of a change
 * may be lost, and because a clock may be set.
 */
const MAX_SLEEP_MS = 5_000;

/**
 * Calls `look` immediately when started, then every `everyMs` (± 20 %, so that several nodes do not poll in step).
 * After a nudge, the poller first rests for as long as the last look took, so that a flood of nudges takes at most half
 * of the time. The timers of the poller do not keep the process alive.
 *
 * If nothing happened between two looks, the poller asks `quietMs` and sleeps until something is due, because each
 * wake-up of an idle process costs about 0.2 ms of processor time.
 */
export class Poller {
  readonly #everyMs: number;
  readonly #random: () => number;
  readonly #look: () => Promise<void>;
  readonly #quietMs: QuietMs;
  readonly #watch: Watch | undefined;
  readonly #elapsed: Clock;
  #unwatch: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #started = false;
  #nudged = false;
  /** Whether the poller was nudged or woken since the last look began. */
  #stirred = false;
  #asleep = false;
  #sleepEndsAtMs = 0;
  #restMs = 0;

  /**
   * @param input.look must not reject
   * @param input.quietMs default: the poller never sleeps. If this rejects, it does not sleep either
   * @param input.elapsed a monotonic clock, in milliseconds
   */
  constructor(input: {
    everyMs: number;
    random: () => number;
    look: () => Promise<void>;
    quietMs?: QuietMs | undefined;
    watch?: Watch | undefined;
    elapsed?: Clock;
  }) {
    this.#everyMs = input.everyMs;
    this.#random = input.random;
    this.#look = input.look;
    this.#quietMs = input.quietMs ?? (async () => 0);
    this.#watch = input.watch;
    this.#elapsed = input.elapsed ?? (() => performance.now());
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#unwatch = this.#watch?.(this);
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
    this.#stirred = true;
    if (this.#nudged || !this.#started) return;
    this.#nudged = true;
    if (this.#looking === undefined) this.#schedule(this.#restMs);
  }

  /**
   * Ends a sleep: the poller looks again every `everyMs`, until nothing happens between two looks. The next look is not
   * later than without this call.
   */
  wake(): void {
    this.#stirred = true;
    if (!this.#asleep || !this.#started) return;
    const leftMs = Math.max(0, this.#sleepEndsAtMs - this.#elapsed());
    this.#schedule(Math.min(leftMs, this.#intervalMs()));
  }

  #intervalMs(): number {
    return this.#everyMs * (0.8 + 0.4 * this.#random());
  }

  #schedule(ms: number): void {
    this.#asleep = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#run(), ms);
    this.#timer.unref();
  }

  #run(): void {
    if (this.#looking !== undefined) return;
    const wasStirred = this.#stirred;
    this.#nudged = false;
    this.#stirred = false;
    this.#looking = this.#lookOnce(wasStirred).then((quietMs) => {
      this.#looking = undefined;
      if (!this.#started) return;
      if (this.#nudged) this.#schedule(this.#restMs);
      else if (this.#stirred || quietMs <= 0) this.#schedule(this.#intervalMs());
      else {
        const sleepMs = Math.min(quietMs, MAX_SLEEP_MS);
        this.#schedule(sleepMs);
        this.#asleep = true;
        this.#sleepEndsAtMs = this.#elapsed() + sleepMs;
      }
    });
  }

  /** Returns how long the poller may sleep. */
  async #lookOnce(wasStirred: boolean): Promise<number> {
    const startMs = this.#elapsed();
    await this.#look();
    this.#restMs = Math.min(MAX_REST_MS, this.#elapsed() - startMs);
    if (wasStirred || this.#stirred) return 0;
    return this.#quietMs().catch(() => 0);
  }
}
