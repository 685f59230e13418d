/** Lanes that rest until a known time: a probe of the breaker, `Retry-After`, a rate, the next in an order. */
import type { Clock } from '../std/clock.ts';
import type { Lane } from './lane.ts';

/** What `setTimeout` can wait at most. */
const MAX_WAIT_MS = 2 ** 31 - 1;

export class LaneAlarm {
  readonly #now: Clock;
  readonly #ring: () => void;
  readonly #resting = new Map<Lane, number>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #running = false;

  /** @param ring called when a lane has rested; `due` then answers which. Not while it is stopped */
  constructor(now: Clock, ring: () => void) {
    this.#now = now;
    this.#ring = ring;
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

  set(lane: Lane, at: number): void {
    this.#resting.set(lane, at);
    if (this.#running && at < this.#timerAt) this.#wait(at);
  }

  /** Takes out the lanes that have rested. */
  due(): Lane[] {
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
    const ms = Math.min(MAX_WAIT_MS, Math.max(1, at - this.#now()));
    this.#timer = setTimeout(() => {
      this.#ring();
      if (this.#running) this.#arm();
    }, ms);
    this.#timer.unref();
  }
}
