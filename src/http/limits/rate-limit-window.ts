/** A fixed-window counter for very many clients, in bounded memory. */
import type { Rate } from '../../model/rate.ts';

/** Clients counted at once, some 10 MB; beyond that, those whose window ends first are forgotten. */
const MAX_COUNTED = 50_000;

/** Where a client stands. */
export interface Standing {
  /** Whether what it asked for is within the rate. */
  isWithin: boolean;
  /** What is left in the window. */
  left: number;
  /** Milliseconds until the window ends. */
  untilMs: number;
}

/** A client's window begins with the first thing counted, and the whole count comes back when it ends. */
export class RateLimitWindow {
  readonly rate: Rate;
  readonly #most: number;
  /** In the order in which the windows end, since all have one length. */
  readonly #counted = new Map<string, { count: number; endsAtMs: number }>();

  /** @param most how many clients are counted at once */
  constructor(rate: Rate, most = MAX_COUNTED) {
    this.rate = rate;
    this.#most = most;
  }

  get size(): number {
    return this.#counted.size;
  }

  /**
   * Counts one thing, or several. What exceeds the rate is not counted.
   *
   * @param nowMs of a clock that does not go back
   */
  take(who: string, nowMs: number, count = 1): Standing {
    const window = this.#windowOf(who, nowMs);
    const isWithin = window.count < this.rate.count;
    window.count = Math.min(this.rate.count, window.count + count);
    return { isWithin, left: this.rate.count - window.count, untilMs: window.endsAtMs - nowMs };
  }

  /** Takes one back. */
  give(who: string): void {
    const window = this.#counted.get(who);
    if (window !== undefined && window.count > 0) window.count -= 1;
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

  /** Forgets windows that have ended and, at the limit, the one that ends next. */
  #forget(nowMs: number): void {
    for (const [who, { endsAtMs }] of this.#counted) {
      if (endsAtMs > nowMs && this.#counted.size < this.#most) return;
      this.#counted.delete(who);
    }
  }
}
