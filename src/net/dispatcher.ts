/** The way out: an undici dispatcher that connects only to addresses that the policy allows. */
import { isIP, type Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { type Connection, rememberFailure, watchSocket } from './connection.ts';
import type { Resolver } from './resolver.ts';
import { Agent, buildConnector } from './undici.ts';

/** A connection was refused by the address policy; the message says which address, why and what would allow it. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError';
}

const CONNECT_MS = 5_000;
/** So that a name that moves to another address is noticed even while its connection is in steady use. */
const CONNECTION_LIFE_MS = 60_000;

/**
 * Makes a dispatcher that refuses, pins and compares:
 *
 * - an IP literal is judged before anything else, for no look-up hook ever sees one;
 * - a name is resolved once per connection by our own resolver and refused if *any* of its addresses is not
 *   allowed, and the socket goes to one of exactly those addresses (Node races them, RFC 8305), while Host and
 *   SNI keep the name: a second, different answer of the name server is never asked for;
 * - after connecting, the address that the socket really ended at is judged once more.
 *
 * Redirects are not followed: `request` of undici does not. `connectMs` covers look-up, connect and TLS.
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
      // The types do not say so, but the connector answers the socket it is connecting.
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
