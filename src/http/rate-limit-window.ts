/** Counts what somebody does within a window of time, for very many of them in a bounded memory. */
import type { Rate } from '../model/rate.ts';

/** Counted at once; of more, those whose window ends first are forgotten. Some 10 MB. */
const MAX_COUNTED = 50_000;

/** How somebody stands. */
export interface Standing {
  /** Whether what was asked for is within the rate. */
  isWithin: boolean;
  /** What is left within the window. */
  left: number;
  /** Milliseconds until the window ends. */
  untilMs: number;
}

/** The window of each begins with the first that is counted, and its whole count comes back at its end. */
export class RateLimitWindow {
  readonly rate: Rate;
  readonly #most: number;
  /** In the order in which their windows end, for all are of one length. */
  readonly #counted = new Map<string, { count: number; endsAtMs: number }>();

  /** @param most how many are counted at once */
  constructor(rate: Rate, most = MAX_COUNTED) {
    this.rate = rate;
    this.#most = most;
  }

  get size(): number {
    return this.#counted.size;
  }

  /**
   * Counts one thing, or several; what is beyond the rate is counted no more.
   *
   * @param nowMs of a clock that never goes back
   */
  take(who: string, nowMs: number, count = 1): Standing {
    const window = this.#windowOf(who, nowMs);
    const isWithin = window.count < this.rate.count;
    window.count = Math.min(this.rate.count, window.count + count);
    return { isWithin, left: this.rate.count - window.count, untilMs: window.endsAtMs - nowMs };
  }

  #windowOf(who: string, nowMs: number): { count: number; endsAtMs: number } {
    const found = this.#counted.get(who);
    if (found !== undefined && found.endsAtMs > nowMs) return found;
    this.#counted.delete(who);
    this.#forget(nowMs);
    const begun = { count: 0, endsAtMs: nowMs + this.rate.windowMs };
    this.#counted.set(who, begun);
    return begun;
  }

  /** All whose window is over, and one more when there are too many. */
  #forget(nowMs: number): void {
    for (const [who, { endsAtMs }] of this.#counted) {
      if (endsAtMs > nowMs && this.#counted.size < this.#most) return;
      this.#counted.delete(who);
    }
  }
}
