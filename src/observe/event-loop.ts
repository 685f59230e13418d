/**
 * Event loop delay. Node's own histogram ticks at one rate, so that a fine rate would wake an idle process 50 times per
 * second: half of the processor time of an idle node. Its option `samplePerIteration` misses callbacks of threads.
 *
 *     resting: a tick every 250 ms ──the event loop was busy for 20 ms or more──▶ watching: a tick every 20 ms
 *         ▲                                                                              │
 *         └──────────────────── busy for less than 20 ms of the last 250 ms ─────────────┘
 *
 * While resting, no callback can have waited longer than the event loop was busy since the last tick. If the event loop
 * made only a few turns, a tick at rest reports this time as the delay. After many turns, it would be the sum of many
 * short callbacks, so the tick reports how late it is itself.
 */
import { createHistogram, performance } from 'node:perf_hooks';
import type { Clock } from '../std/clock.ts';

/** A delay is underestimated by up to this much. */
const RESOLUTION_MS = 20;
const REST_MS = 250;
/** Maximum number of turns whose busy time counts as one delay. */
const FEW_TURNS = 10;
const WINDOW_MS = 60_000;
/** Number of ticks without delay that a tick at rest counts as. */
const TICKS_AT_REST = REST_MS / RESOLUTION_MS;
const HOUR_US = 3_600_000_000;

/** Event loop delay: how long due timers had to wait, in milliseconds. */
export interface EventLoopDelay {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

/**
 * Measures the event loop delay continuously and reports the last full minute. During the first minute, it reports the
 * values measured so far.
 */
export class EventLoopMonitor {
  readonly #elapsed: Clock;
  readonly #busyMs: () => number;
  readonly #turns: () => number;
  /** In microseconds. */
  readonly #delays = createHistogram({ lowest: 1, highest: HOUR_US, figures: 3 });
  /** Number of ticks without delay that `#delays` does not contain. */
  #undelayed = 0;
  #timer: NodeJS.Timeout | undefined;
  #last: EventLoopDelay | undefined;
  #everyMs = REST_MS;
  #tickedAt = 0;
  /** The last comparison of busy and elapsed time. */
  #compared = { at: 0, busyMs: 0, turns: 0 };
  #windowBeganAt = 0;

  /**
   * @param options.elapsed a monotonic clock, in milliseconds
   * @param options.busyMs how long the event loop has been busy since its start, in milliseconds
   * @param options.turns how many turns the event loop has made since its start
   */
  constructor({
    elapsed = () => performance.now(),
    busyMs = () => performance.eventLoopUtilization().active,
    turns = () => performance.nodeTiming.uvMetricsInfo.loopCount,
  } = {}) {
    this.#elapsed = elapsed;
    this.#busyMs = busyMs;
    this.#turns = turns;
  }

  start(): void {
    if (this.#timer !== undefined) return;
    const nowMs = this.#elapsed();
    this.#everyMs = REST_MS;
    this.#tickedAt = nowMs;
    this.#compared = { at: nowMs, busyMs: this.#busyMs(), turns: this.#turns() };
    this.#windowBeganAt = nowMs;
    this.#schedule();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#last = undefined;
    this.#clear();
  }

  read(): EventLoopDelay {
    return this.#last ?? this.#measured();
  }

  /** Measures the delay since the last tick. Returns the milliseconds until the next tick. Used by tests. */
  tick(): number {
    const nowMs = this.#elapsed();
    const lateMs = nowMs - this.#tickedAt - this.#everyMs;
    this.#tickedAt = nowMs;
    if (this.#everyMs === RESOLUTION_MS) {
      this.#note(lateMs);
      if (nowMs - this.#compared.at >= REST_MS && this.#compare(nowMs).busyMs < RESOLUTION_MS)
        this.#everyMs = REST_MS;
    } else {
      const { busyMs, turns } = this.#compare(nowMs);
      if (Math.max(lateMs, busyMs) < RESOLUTION_MS) this.#undelayed += TICKS_AT_REST;
      else {
        this.#note(turns > FEW_TURNS ? lateMs : Math.max(lateMs, busyMs));
        this.#everyMs = RESOLUTION_MS;
      }
    }
    if (nowMs - this.#windowBeganAt >= WINDOW_MS) {
      this.#last = this.#measured();
      this.#clear();
      this.#windowBeganAt = nowMs;
    }
    return this.#everyMs;
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.tick();
      this.#schedule();
    }, this.#everyMs).unref();
  }

  /** How long the event loop was busy since the last call, in milliseconds, and how many turns it made. */
  #compare(nowMs: number): { busyMs: number; turns: number } {
    const before = this.#compared;
    const now = { at: nowMs, busyMs: this.#busyMs(), turns: this.#turns() };
    this.#compared = now;
    return { busyMs: now.busyMs - before.busyMs, turns: now.turns - before.turns };
  }

  #note(delayMs: number): void {
    this.#delays.record(Math.min(HOUR_US, Math.max(1, Math.round(delayMs * 1_000))));
  }

  #clear(): void {
    this.#delays.reset();
    this.#undelayed = 0;
  }

  #measured(): EventLoopDelay {
    const { count, max } = this.#delays;
    return {
      p50Ms: this.#percentile(0.5),
      p99Ms: this.#percentile(0.99),
      maxMs: count === 0 ? 0 : max / 1_000,
    };
  }

  #percentile(share: number): number {
    const { count } = this.#delays;
    const among = share * (count + this.#undelayed) - this.#undelayed;
    return among <= 0 ? 0 : this.#delays.percentile((100 * among) / count) / 1_000;
  }
}
