/** How often somebody may try to sign in: keys cannot be guessed, but trying must not cost more than it does. */
import { subscriberOf } from '../../net/peer-address.ts';

const WINDOW_MS = 60_000;
const MAX_TRIES = 10;
/** Addresses that are counted at once; of more, those that came first are forgotten. */
const MAX_ADDRESSES = 10_000;

/** Counts what failed for each address, on this node. */
export class SignInLimit {
  readonly #tries = new Map<string, { count: number; untilMs: number }>();

  /** Counts a try; answers how long this address has to wait instead, 0 when it may try now. */
  take(address: string, nowMs: number): number {
    const place = subscriberOf(address);
    let tries = this.#tries.get(place);
    if (tries === undefined || tries.untilMs <= nowMs) {
      tries = { count: 0, untilMs: nowMs + WINDOW_MS };
      this.#tries.delete(place);
      const [first] = this.#tries.keys();
      if (this.#tries.size >= MAX_ADDRESSES && first !== undefined) this.#tries.delete(first);
      this.#tries.set(place, tries);
    }
    if (tries.count >= MAX_TRIES) return tries.untilMs - nowMs;
    tries.count += 1;
    return 0;
  }

  /** A try that succeeded is not counted. */
  give(address: string): void {
    const tries = this.#tries.get(subscriberOf(address));
    if (tries !== undefined) tries.count -= 1;
  }
}
