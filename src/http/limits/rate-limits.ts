/**
 * Rate limits of this node: by address before anything is looked up, and by key once it is known. Both are off unless
 * the operator sets them, since the contract has no 429.
 *
 *     request ──▶ of its address ──▶ the key is looked up ──▶ of its key ──▶ answered
 *                      └──────────── 429 ◀────────────────────────┘
 */
import { Problem } from '../../model/error.ts';
import type { Rate } from '../../model/rate.ts';
import { subscriberOf } from '../../net/host.ts';
import { clientAddress } from '../server/caller.ts';
import type { Reply, Request } from '../server/exchange.ts';
import { RateLimitWindow, type Standing } from './rate-limit-window.ts';

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
