/** Remembers until when lanes rest, and reports when a rest is over, with one timer for all lanes. */
import type { Clock } from '../std/clock.ts';
import type { Lane } from './lane.ts';

/** Maximum delay of `setTimeout`. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class LaneRests {
  readonly #now: Clock;
  readonly #onOver: () => void;
  /** In epoch milliseconds. */
  readonly #until = new Map<Lane, number>();
  #isStarted = false;
  #timer: NodeJS.Timeout | undefined;
  /** In epoch milliseconds. */
  #timerAt = Number.POSITIVE_INFINITY;

  /** @param input.onOver called when a rest is over, unless stopped; must call `over` */
  constructor(input: { now: Clock; onOver: () => void }) {
    this.#now = input.now;
    this.#onOver = input.onOver;
  }

  start(): void {
    this.#isStarted = true;
    this.#arm();
  }

  /** Stops the timer. The lanes keep their rests. */
  stop(): void {
    this.#isStarted = false;
    this.#disarm();
  }

  /** Lets a lane rest until a time, in epoch milliseconds. */
  rest(lane: Lane, untilMs: number): void {
    this.#until.set(lane, untilMs);
    if (untilMs < this.#timerAt) this.#setTimer(untilMs);
  }

  forget(lane: Lane): void {
    this.#until.delete(lane);
  }

  /** Forgets and returns the lanes whose rest is over. */
  over(): Lane[] {
    const nowMs = this.#now();
    const over: Lane[] = [];
    for (const [lane, at] of this.#until) if (at <= nowMs) over.push(lane);
    for (const lane of over) this.forget(lane);
    return over;
  }

  #arm(): void {
    this.#disarm();
    let first = Number.POSITIVE_INFINITY;
    for (const at of this.#until.values()) first = Math.min(first, at);
    if (first < Number.POSITIVE_INFINITY) this.#setTimer(first);
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #setTimer(at: number): void {
    if (!this.#isStarted) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    const ms = Math.min(MAX_TIMER_MS, Math.max(1, at - this.#now()));
    this.#timer = setTimeout(() => {
      this.#onOver();
      if (this.#isStarted) this.#arm();
    }, ms).unref();
  }
}
