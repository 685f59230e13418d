/**
 * Rate limits of this node: by address before anything is looked up, and by key once it is known. Both are off unless
 * the operator sets them, since the contract has no 429.
 *
 *     request ──▶ of its address ──▶ the key is looked up ──▶ of its key ──▶ answered
 *                      └──────────── 429 ◀────────────────────────┘
 */
import { Problem } from '../../model/error.ts';
import type { Rate } from '../../model/load-limit.ts';
import { subscriberOf } from '../../net/host.ts';
import { clientAddress } from '../server/caller.ts';
import type { Reply, Request } from '../server/exchange.ts';

/** A request with an invalid key counts as this many. */
const WRONG_KEY_COST = 10;

type Policy = 'address' | 'key';

const SENTENCES: Readonly<Record<Policy, string>> = {
  address: 'Too many requests came from this address. Wait as long as `retry-after` says',
  key: 'Too many requests were made with this key. Wait as long as `retry-after` says',
};

/** Whether this is a header of draft-ietf-httpapi-ratelimit-headers-10. */
export function isRateLimitField(name: string): boolean {
  return name === 'ratelimit-policy' || name === 'ratelimit';
}

export class RateLimits {
  readonly #windows: { readonly [P in Policy]?: RateLimitWindow };

  /** @param input null turns a limit off */
  constructor({ perKey, perAddress }: { perKey: Rate | null; perAddress: Rate | null }) {
    this.#windows = {
      ...(perAddress === null ? {} : { address: new RateLimitWindow(perAddress) }),
      ...(perKey === null ? {} : { key: new RateLimitWindow(perKey) }),
    };
  }

  /**
   * Counts a request of an address.
   *
   * @throws Problem `rate_limited`
   */
  countAddress(request: Request, reply: Reply): void {
    this.#count('address', () => subscriberOf(clientAddress(request)), reply);
  }

  /**
   * Counts a request of a key, or of a session that was begun with it.
   *
   * @throws Problem `rate_limited`
   */
  countKey(keyId: string, reply: Reply): void {
    this.#count('key', () => keyId, reply);
  }

  /** Counts a request again whose key turned out to be invalid, to slow down guessing. */
  countWrongKey(request: Request, reply: Reply): void {
    const window = this.#windows.address;
    if (window === undefined) return;
    const standing = window.take(subscriberOf(clientAddress(request)), performance.now(), WRONG_KEY_COST - 1);
    reply.header('ratelimit', standingItem('address', standing));
  }

  #count(policy: Policy, who: () => string, reply: Reply): void {
    const window = this.#windows[policy];
    if (window === undefined) return;
    const standing = window.take(who(), performance.now());
    setHeaders(reply, policy, window.rate, standing);
    if (standing.isWithin) return;
    throw new Problem('rate_limited', {
      sentence: SENTENCES[policy],
      headers: { 'retry-after': String(secondsOf(standing.untilMs)) },
    });
  }
}

/** Adds the headers of one policy to those of the other. */
function setHeaders(reply: Reply, policy: Policy, rate: Rate, standing: Standing): void {
  append(reply, 'ratelimit-policy', `"${policy}";q=${rate.count};w=${rate.windowMs / 1_000}`);
  append(reply, 'ratelimit', standingItem(policy, standing));
}

function standingItem(policy: Policy, { left, untilMs }: Standing): string {
  return `"${policy}";r=${left};t=${secondsOf(untilMs)}`;
}

function append(reply: Reply, field: string, item: string): void {
  const before = reply.getHeader(field);
  reply.header(field, before === undefined ? item : `${String(before)}, ${item}`);
}

/** Whole seconds, rounded up, at least 1. */
function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}

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
