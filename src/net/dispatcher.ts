/** The guard against server-side request forgery: an undici dispatcher that connects only to allowed addresses. */
import { isIP, type Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { type Connection, rememberFailure, watchSocket } from './connection.ts';
import type { Resolver } from './resolver.ts';
import { Agent, buildConnector } from './undici.ts';

/** The address policy refused a connection; the message says which address, why, and what would allow it. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError';
}

const CONNECT_MS = 5_000;
/** Bounded so that a change of address in DNS is noticed even while a connection is in constant use. */
const CONNECTION_LIFE_MS = 60_000;

/**
 * Every connection is checked three times:
 *
 * - an IP literal is checked before anything else, because it never reaches the `lookup` hook;
 * - a name is resolved once per connection by our own resolver and refused if *any* of its addresses is not
 *   allowed. The socket then connects to one of exactly those addresses (Node races them, RFC 8305), while Host
 *   and SNI keep the name: DNS is not asked a second time, so rebinding has no effect;
 * - after connecting, the socket's actual remote address is checked once more.
 *
 * Redirects are not followed: undici does that only with an interceptor.
 *
 * @param options.connectMs limit for the look-up, the connection and the TLS handshake together; 5 s by default
 */
export function createGuardedDispatcher(options: {
  policy: AddressPolicy;
  resolver: Resolver;
  connectMs?: number;
}): Dispatcher {
  const { policy, resolver } = options;

  async function vetted(hostname: string): Promise<{ address: string; family: number }[]> {
    const addresses = await resolver.resolve(hostname);
    for (const address of addresses) {
      const verdict = policy.verdict(address);
      if (!verdict.allowed)
        throw new BlockedAddressError(`${hostname} resolves to ${address}, and ${verdict.why}`);
    }
    return addresses.map((address) => ({ address, family: isIP(address) }));
  }

  const connect = buildConnector({
    timeout: options.connectMs ?? CONNECT_MS,
    allowH2: false,
    autoSelectFamily: true,
    lookup(hostname, lookupOptions, callback) {
      vetted(hostname).then(
        (addresses) => {
          if (lookupOptions.all) return callback(null, addresses);
          const [first] = addresses;
          callback(null, first?.address ?? '', first?.family);
        },
        (error: Error) => callback(error, []),
      );
    },
  });

  return new Agent({
    keepAliveMaxTimeout: CONNECTION_LIFE_MS,
    clientTtl: CONNECTION_LIFE_MS,
    allowH2: false,
    connect(target, callback) {
      if (isIP(target.hostname) !== 0) {
        const verdict = policy.verdict(target.hostname);
        if (!verdict.allowed) return callback(new BlockedAddressError(verdict.why), null);
      }
      let connection: Connection | undefined;
      // The types do not say so, but the connector returns the socket that it connects.
      const connecting: unknown = connect(target, (error, socket) => {
        if (error !== null) {
          if (connection !== undefined) rememberFailure(error, connection);
          return callback(error, null);
        }
        const verdict = policy.verdict(socket.remoteAddress ?? '');
        if (verdict.allowed) return callback(null, socket);
        socket.destroy();
        callback(new BlockedAddressError(`The connection was cut: ${verdict.why}`), null);
      });
      if (connecting !== undefined) connection = watchSocket(connecting as Socket);
    },
  });
}
