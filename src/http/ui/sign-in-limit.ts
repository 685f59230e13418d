/** Limits failed sign-ins by address. Keys cannot be guessed: this only bounds what trying costs. */
import { subscriberOf } from '../../net/host.ts';
import { RateLimitWindow } from '../limits/rate-limit-window.ts';

const RATE = { count: 10, windowMs: 60_000 };
const MAX_ADDRESSES = 10_000;

/** Counts failures on this node. */
export class SignInLimit {
  readonly #failures = new RateLimitWindow(RATE, MAX_ADDRESSES);

  /** Counts an attempt; returns how many milliseconds this address has to wait first, 0 when it may try now. */
  take(address: string, nowMs: number): number {
    const { isWithin, untilMs } = this.#failures.take(subscriberOf(address), nowMs);
    return isWithin ? 0 : untilMs;
  }

  /** Takes back an attempt that succeeded. */
  give(address: string): void {
    this.#failures.give(subscriberOf(address));
  }
}
