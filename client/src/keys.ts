/** The API keys of the team: listing, creating, rotating and revoking them. */
import { type ListOptions, type Pages, pagesOf } from './pages.ts';
import type { Key, MadeKey } from './resources.ts';
import { type CallOptions, type KeyedOptions, randomKey, type Transport } from './transport.ts';

export type Scope = Key['scopes'][number];

export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The keys of the team, oldest first, revoked ones included. */
  list(options: ListOptions = {}): Pages<Key> {
    return pagesOf(this.#transport, 'keys', { ...options, path: '/v1/keys' });
  }

  /**
   * Creates a key. Every call creates another, but one with the same `idempotencyKey`.
   *
   * @param input.scopes `read`, `queue` and `webhooks` unless told; `admin` includes them
   * @throws Conflict when a call with this `idempotencyKey` has created a key before, which cannot be shown again: its
   *   message names that key, to be rotated
   */
  create(
    input: { name?: string; scopes?: readonly Scope[]; expiresAt?: Date | string | null } = {},
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<MadeKey> {
    const call = { ...options, method: 'POST', path: '/v1/keys', json: input, idempotencyKey };
    return this.#transport.json(call);
  }

  /**
   * Replaces a key by a new one.
   *
   * @param options.overlapSeconds how long the old one goes on working; 0 unless told: it ends at once
   * @throws NotFound, also of one that is revoked or expired
   */
  rotate(
    keyId: string,
    { overlapSeconds, ...options }: CallOptions & { overlapSeconds?: number } = {},
  ): Promise<MadeKey> {
    const path = `${pathOf(keyId)}/rotate`;
    return this.#transport.json({ ...options, method: 'POST', path, json: { overlapSeconds } });
  }

  /**
   * Revokes a key for good, at once. Repeating it is harmless.
   *
   * @param options.self must be true for the key that makes the call
   * @throws NotFound
   */
  async revoke(keyId: string, { self, ...options }: CallOptions & { self?: boolean } = {}): Promise<Key> {
    const call = { ...options, method: 'DELETE', path: pathOf(keyId), query: { self } };
    // Once its own key is revoked, a retry is refused, which does not say whether the first attempt did it.
    return (await this.#transport.json<{ key: Key }>(call, self ? undefined : null)).key;
  }
}

function pathOf(keyId: string): string {
  return `/v1/keys/${encodeURIComponent(keyId)}`;
}
