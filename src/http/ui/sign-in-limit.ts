/** How often somebody may try to sign in: keys cannot be guessed, but trying must not cost more than it does. */
import { isIPv6 } from 'node:net';

const WINDOW_MS = 60_000;
const MAX_TRIES = 10;
/** Addresses that are counted at once; of more, those that came first are forgotten. */
const MAX_ADDRESSES = 10_000;

/** Counts what failed for each address, on this node. */
export class SignInLimit {
  readonly #tries = new Map<string, { count: number; untilMs: number }>();

  /** Counts a try; answers how long this address has to wait instead, 0 when it may try now. */
  take(address: string, nowMs: number): number {
    const place = placeOf(address);
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
    const tries = this.#tries.get(placeOf(address));
    if (tries !== undefined) tries.count -= 1;
  }
}

/** One subscriber has a whole /64 of IPv6. */
function placeOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length;
  return [...groups, ...new Array<string>(zeros).fill('0'), ...rest].slice(0, 4).join(':');
}
