/** Authenticates requests by the `x-api-key` header. */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../model/error.ts';
import { allows, type Scope } from '../model/team.ts';
import type { Authenticator, Caller } from '../teams/keys.ts';

/**
 * The caller whose key the request carries.
 *
 * @throws Problem as `authenticateKey` does
 */
export function authenticate(
  authenticator: Authenticator,
  request: IncomingMessage,
  scope: Scope | 'any',
): Promise<Caller> {
  return authenticateKey(authenticator, keyOf(request), scope);
}

/**
 * The caller to whom a key belongs.
 *
 * @throws Problem `unauthorized` when the key is missing, empty, sent twice, unknown, expired or revoked;
 *   `scope_missing` when it does not have the scope
 */
export async function authenticateKey(
  authenticator: Authenticator,
  key: string | undefined,
  scope: Scope | 'any',
): Promise<Caller> {
  const caller = key === undefined ? undefined : await authenticator.authenticate(key);
  if (caller === undefined) throw new Problem('unauthorized');
  if (scope !== 'any' && !allows(caller.scopes, scope)) {
    throw new Problem('scope_missing', {
      sentence: `This API key does not have the scope \`${scope}\`, which this operation needs. Use one that has it`,
    });
  }
  return caller;
}

/** The key, if exactly one was sent. Node joins repeated headers with a comma, which a key may contain as well. */
export function keyOf(request: IncomingMessage): string | undefined {
  const value = request.headers['x-api-key'];
  if (typeof value !== 'string') return undefined;
  if (value.includes(',') && request.headersDistinct['x-api-key']?.length !== 1) return undefined;
  return value.trim() || undefined;
}
