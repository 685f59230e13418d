/** The API keys of the team. */
import { type ListOptions, type Pages, pagesOf } from './pages.ts';
import type { Key, MadeKey } from './resources.ts';
import { type CallOptions, type KeyedOptions, randomKey, type Transport } from './transport.ts';

export type Scope = Key['scopes'][number];

export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The keys of the team, oldest first, including revoked keys. */
  list(options: ListOptions = {}): Pages<Key> {
    return pagesOf(this.#transport, 'keys', { ...options, path: '/v1/keys' });
  }

  /**
   * Creates a key. Only this response contains the key itself.
   *
   * @param input.scopes default: `read`, `queue` and `webhooks`; `admin` includes them
   * @throws Conflict if a call with this `idempotencyKey` has already created a key, which cannot be shown again: the
   *   message names the key, for rotating it
   */
  create(
    input: { name?: string; scopes?: readonly Scope[]; expiresAt?: Date | string | null } = {},
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<MadeKey> {
    const call = { ...options, method: 'POST', path: '/v1/keys', json: input, idempotencyKey };
    return this.#transport.json(call);
  }

  /**
   * Replaces a key with a new one.
   *
   * @param options.overlapSeconds seconds for which the old key continues to work (default: 0)
   * @throws NotFound, also for a revoked or expired key
   */
  rotate(
    keyId: string,
    { overlapSeconds, ...options }: CallOptions & { overlapSeconds?: number } = {},
  ): Promise<MadeKey> {
    const path = `${pathOf(keyId)}/rotate`;
    return this.#transport.json({ ...options, method: 'POST', path, json: { overlapSeconds } });
  }

  /**
   * Revokes a key immediately and permanently. Repeating the call is harmless.
   *
   * @param options.self must be true to revoke the key that makes the call
   * @throws NotFound
   */
  async revoke(keyId: string, { self, ...options }: CallOptions & { self?: boolean } = {}): Promise<Key> {
    const call = { ...options, method: 'DELETE', path: pathOf(keyId), query: { self } };
    // After revoking its own key, a retry fails with 401, which does not say whether the first attempt succeeded.
    return (await this.#transport.json<{ key: Key }>(call, self ? undefined : null)).key;
  }
}

function pathOf(keyId: string): string {
  return `/v1/keys/${encodeURIComponent(keyId)}`;
}
