/**
 * Rate limits of this node: by address before the key is looked up, and by key afterwards. Both are off by default,
 * because the contract has no 429.
 *
 *     request ──▶ limit of the address ──▶ key lookup ──▶ limit of the key ──▶ response
 *                      └──────────────────── 429 ◀────────────┘
 */
import { Problem } from '../../model/error.ts';
import type { Rate } from '../../model/load-limit.ts';
import { subscriberOf } from '../../net/host.ts';
import { clientAddress } from '../server/caller.ts';
import type { Reply, Request } from '../server/exchange.ts';

/** A request with an invalid key counts as this many requests. */
const WRONG_KEY_COST = 10;

type Policy = 'address' | 'key';

const SENTENCES: Readonly<Record<Policy, string>> = {
  address: 'Too many requests from this address. Retry after the number of seconds in `retry-after`',
  key: 'Too many requests with this key. Retry after the number of seconds in `retry-after`',
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
   * Counts a request from its address.
   *
   * @throws Problem `rate_limited`
   */
  countAddress(request: Request, reply: Reply): void {
    this.#count('address', () => subscriberOf(clientAddress(request)), reply);
  }

  /**
   * Counts a request of a key, or of a session that was started with the key.
   *
   * @throws Problem `rate_limited`
   */
  countKey(keyId: string, reply: Reply): void {
    this.#count('key', () => keyId, reply);
  }

  /** Counts a request with an invalid key as several requests, to slow down guessing. */
  countWrongKey(request: Request, reply: Reply): void {
    const window = this.#windows.address;
    if (window === undefined) return;
    const quota = window.take(subscriberOf(clientAddress(request)), performance.now(), WRONG_KEY_COST - 1);
    reply.header('ratelimit', quotaItem('address', quota));
  }

  #count(policy: Policy, who: () => string, reply: Reply): void {
    const window = this.#windows[policy];
    if (window === undefined) return;
    const quota = window.take(who(), performance.now());
    append(reply, 'ratelimit-policy', `"${policy}";q=${window.rate.count};w=${window.rate.windowMs / 1_000}`);
    append(reply, 'ratelimit', quotaItem(policy, quota));
    if (quota.isWithin) return;
    throw new Problem('rate_limited', {
      sentence: SENTENCES[policy],
      headers: { 'retry-after': String(secondsOf(quota.untilMs)) },
    });
  }
}

function quotaItem(policy: Policy, { left, untilMs }: WindowQuota): string {
  return `"${policy}";r=${left};t=${secondsOf(untilMs)}`;
}

/** Appends an item to a header, which may already have the item of the other policy. */
function append(reply: Reply, field: string, item: string): void {
  const before = reply.getHeader(field);
  reply.header(field, before === undefined ? item : `${String(before)}, ${item}`);
}

/** Whole seconds, rounded up, at least 1. */
function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}

/** Maximum number of clients that are counted, about 10 MB. Beyond it, the windows that end first are forgotten. */
const MAX_COUNTED = 50_000;

/** What remains of a client's rate in its current window. */
export interface WindowQuota {
  /** Whether the request is within the rate. */
  isWithin: boolean;
  /** Requests that remain in the window. */
  left: number;
  /** Milliseconds until the window ends. */
  untilMs: number;
}

/** A client's window starts with its first request. The count is reset when the window ends. */
export class RateLimitWindow {
  readonly rate: Rate;
  readonly #most: number;
  /** Ordered by the end of the windows, because all windows have the same length. */
  readonly #counted = new Map<string, { count: number; endsAtMs: number }>();

  /** @param most maximum number of clients that are counted */
  constructor(rate: Rate, most = MAX_COUNTED) {
    this.rate = rate;
    this.#most = most;
  }

  get size(): number {
    return this.#counted.size;
  }

  /**
   * Counts one request as `count` requests. The total never exceeds the rate.
   *
   * @param nowMs of a monotonic clock
   */
  take(who: string, nowMs: number, count = 1): WindowQuota {
    const window = this.#windowOf(who, nowMs);
    const isWithin = window.count < this.rate.count;
    window.count = Math.min(this.rate.count, window.count + count);
    return { isWithin, left: this.rate.count - window.count, untilMs: window.endsAtMs - nowMs };
  }

  /** Undoes one `take`. */
  give(who: string): void {
    const window = this.#counted.get(who);
    if (window !== undefined && window.count > 0) window.count -= 1;
  }

  #windowOf(who: string, nowMs: number): { count: number; endsAtMs: number } {
    const found = this.#counted.get(who);
    if (found !== undefined && found.endsAtMs > nowMs) return found;
    this.#counted.delete(who);
    this.#forget(nowMs);
    const started = { count: 0, endsAtMs: nowMs + this.rate.windowMs };
    this.#counted.set(who, started);
    return started;
  }

  /** Forgets windows that have ended and, at the maximum, the window that ends next. */
  #forget(nowMs: number): void {
    for (const [who, { endsAtMs }] of this.#counted) {
      if (endsAtMs > nowMs && this.#counted.size < this.#most) return;
      this.#counted.delete(who);
    }
  }
}
