/** One timer for all lanes that rest until a known time: for a probe, `Retry-After`, a rate limit, the next in order. */
import type { Clock } from '../std/clock.ts';
import type { Lane } from './lane.ts';

/** The longest delay that `setTimeout` can take. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export class LaneTimer {
  readonly #now: Clock;
  readonly #onDue: () => void;
  readonly #resting = new Map<Lane, number>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #running = false;

  /** @param onDue called while the timer runs when lanes are due, which `takeDue` then returns */
  constructor(now: Clock, onDue: () => void) {
    this.#now = now;
    this.#onDue = onDue;
  }

  start(): void {
    this.#running = true;
    this.#arm();
  }

  stop(): void {
    this.#running = false;
    clearTimeout(this.#timer);
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  /** @param at epoch milliseconds, by the clock of the constructor */
  set(lane: Lane, at: number): void {
    this.#resting.set(lane, at);
    if (this.#running && at < this.#timerAt) this.#wait(at);
  }

  /** Removes and returns the lanes whose time has come. */
  takeDue(): Lane[] {
    const nowMs = this.#now();
    const rested: Lane[] = [];
    for (const [lane, at] of this.#resting) {
      if (at > nowMs) continue;
      this.#resting.delete(lane);
      rested.push(lane);
    }
    return rested;
  }

  forget(lane: Lane): void {
    this.#resting.delete(lane);
  }

  #arm(): void {
    let first = Number.POSITIVE_INFINITY;
    for (const at of this.#resting.values()) first = Math.min(first, at);
    this.#timerAt = Number.POSITIVE_INFINITY;
    if (first < Number.POSITIVE_INFINITY) this.#wait(first);
  }

  #wait(at: number): void {
    clearTimeout(this.#timer);
    this.#timerAt = at;
    const ms = Math.min(MAX_DELAY_MS, Math.max(1, at - this.#now()));
    this.#timer = setTimeout(() => {
      this.#onDue();
      if (this.#running) this.#arm();
    }, ms);
    this.#timer.unref();
  }
}
