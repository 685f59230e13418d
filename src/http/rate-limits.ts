/**
 * Rate limits, of a node by itself: by address before anything is looked up, and by key when it is known. Both are off
 * unless the operator sets them, for the contract knows no 429.
 *
 *     request ──▶ of its address ──▶ the key is looked up ──▶ of its key ──▶ answered
 *                      └──────────── 429 ◀────────────────────────┘
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../model/error.ts';
import type { Rate } from '../model/rate.ts';
import { subscriberOf } from '../net/peer-address.ts';
import { clientAddress } from './client-address.ts';
import { RateLimitWindow, type Standing } from './rate-limit-window.ts';

/** So much more than others a request costs its address whose key is not good. */
const WRONG_KEY_COST = 10;

type Policy = 'address' | 'key';

const SENTENCES: Readonly<Record<Policy, string>> = {
  address: 'Too many requests came from this address. Wait as long as `retry-after` says',
  key: 'Too many requests were made with this key. Wait as long as `retry-after` says',
};

/** What answers say of it, as draft-ietf-httpapi-ratelimit-headers-10 has it. Answers that are errors keep it. */
export function isRateLimitField(name: string): boolean {
  return name === 'ratelimit-policy' || name === 'ratelimit';
}

export class RateLimits {
  readonly #windows: { readonly [P in Policy]?: RateLimitWindow };

  /** @param input.perKey the rate of each key, if it has one */
  constructor({ perKey, perAddress }: { perKey: Rate | null; perAddress: Rate | null }) {
    this.#windows = {
      ...(perAddress === null ? {} : { address: new RateLimitWindow(perAddress) }),
      ...(perKey === null ? {} : { key: new RateLimitWindow(perKey) }),
    };
  }

  /**
   * Counts a request to its address.
   *
   * @throws Problem `rate_limited` when that has no more
   */
  countAddress(request: FastifyRequest, reply: FastifyReply): void {
    this.#count('address', () => subscriberOf(clientAddress(request)), reply);
  }

  /**
   * Counts a request to the key that it was made with, or that its session was begun with.
   *
   * @throws Problem `rate_limited` when that has no more
   */
  countKey(keyId: string, reply: FastifyReply): void {
    this.#count('key', () => keyId, reply);
  }

  /** The request that was counted has shown no good key: whoever tries many is slowed down. */
  countWrongKey(request: FastifyRequest, reply: FastifyReply): void {
    const window = this.#windows.address;
    if (window === undefined) return;
    const standing = window.take(subscriberOf(clientAddress(request)), performance.now(), WRONG_KEY_COST - 1);
    reply.header('ratelimit', standingItem('address', standing));
  }

  #count(policy: Policy, who: () => string, reply: FastifyReply): void {
    const window = this.#windows[policy];
    if (window === undefined) return;
    const standing = window.take(who(), performance.now());
    tell(reply, policy, window.rate, standing);
    if (standing.isWithin) return;
    throw new Problem('rate_limited', {
      sentence: SENTENCES[policy],
      headers: { 'retry-after': String(secondsOf(standing.untilMs)) },
    });
  }
}

/** Adds how one policy stands to what the answer says of others. */
function tell(reply: FastifyReply, policy: Policy, rate: Rate, standing: Standing): void {
  append(reply, 'ratelimit-policy', `"${policy}";q=${rate.count};w=${rate.windowMs / 1_000}`);
  append(reply, 'ratelimit', standingItem(policy, standing));
}

function standingItem(policy: Policy, { left, untilMs }: Standing): string {
  return `"${policy}";r=${left};t=${secondsOf(untilMs)}`;
}

function append(reply: FastifyReply, field: string, item: string): void {
  const before = reply.getHeader(field);
  reply.header(field, before === undefined ? item : `${String(before)}, ${item}`);
}

/** Whole seconds, after which it is so for certain. */
function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
