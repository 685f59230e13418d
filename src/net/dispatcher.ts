/** The guard against server-side request forgery: undici dispatchers that connect only to allowed addresses. */
import { subscribe } from 'node:diagnostics_channel';
import { isIP, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { DiagnosticsChannel, Dispatcher } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { Connections } from './connections.ts';
import type { Resolver } from './resolver.ts';
import { buildConnector } from './undici.ts';

/**
 * Thrown when the address policy refuses a connection. The message contains the address, the reason, and the setting
 * that would allow the address.
 */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError';
}

const CONNECT_MS = 5_000;
/**
 * Maximum age of a connection. It limits how long a connection in constant use goes to an old address after the name's
 * address has changed in DNS.
 */
const CONNECTION_LIFE_MS = 60_000;

/**
 * Every connection is checked three times:
 *
 * - an IP literal is checked before anything else, because it never reaches the `lookup` hook;
 * - a name is resolved once per connection and refused if *any* of its addresses is not allowed. The socket then
 *   connects to one of these addresses (Node races them, RFC 8305), and Host and SNI keep the name. There is no second
 *   DNS query, so rebinding has no effect;
 * - after connecting, the socket's actual remote address is checked again.
 *
 * Redirects are not followed: undici follows them only with an interceptor.
 *
 * @param options.connectMs limit for lookup, connection and TLS handshake together; default: 5 s
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

  return new Connections({
    lifeMs: CONNECTION_LIFE_MS,
    keepAliveMaxTimeout: CONNECTION_LIFE_MS,
    allowH2: false,
    connect(target, callback) {
      if (isIP(target.hostname) !== 0) {
        const verdict = policy.verdict(target.hostname);
        if (!verdict.allowed) return callback(new BlockedAddressError(verdict.why), null);
      }
      let connection: Connection | undefined;
      // The types of undici do not say so, but the connector returns the socket that it is connecting.
      const connecting: unknown = connect(target, (error, socket) => {
        if (error !== null) {
          if (connection !== undefined) byError.set(error, connection);
          return callback(error, null);
        }
        const verdict = policy.verdict(socket.remoteAddress ?? '');
        if (verdict.allowed) return callback(null, socket);
        socket.destroy();
        callback(new BlockedAddressError(`The connection was closed: ${verdict.why}`), null);
      });
      if (connecting !== undefined) connection = watchSocket(connecting as Socket);
    },
  });
}

/**
 * A connection that a request used. The times come from `performance.now()`. Each is null until its event has happened.
 */
interface Connection {
  /** When the name was resolved. Null for an IP literal. */
  lookedUpMs: number | null;
  connectedMs: number | null;
  /** When the TLS handshake was completed. Null for HTTP. */
  securedMs: number | null;
  remoteAddress: string | null;
  /** Number of requests written to the connection. */
  requests: number;
}

/** A traced request. */
export interface RequestTrace {
  /** The connection to which the request was written. Null before the request is written. */
  connection: Connection | null;
  /** Whether the connection had carried an earlier request. */
  reused: boolean;
}

const bySocket = new WeakMap<Socket, Connection>();
const byError = new WeakMap<Error, Connection>();
/**
 * The key of the trace, which is stored on the body itself. A WeakMap with thousands of new entries per second would
 * slow down garbage collection.
 */
const TRACE = Symbol('trace');
type TracedBody = Uint8Array & { [TRACE]?: RequestTrace };

/**
 * Traces the request that is sent with this body. Undici reports the socket of a request only through its diagnostics
 * channel, where the body identifies the request. So use a buffer as the body of only one request at a time.
 */
export function traceRequest(body: Uint8Array): RequestTrace {
  const trace: RequestTrace = { connection: null, reused: false };
  (body as TracedBody)[TRACE] = trace;
  return trace;
}

/** Returns the connection attempt that failed with this error. Undefined if there was none. */
export function connectionOf(error: unknown): Connection | undefined {
  return error instanceof Error ? byError.get(error) : undefined;
}

/** Records the phases of a connecting socket. Called by the dispatcher. */
function watchSocket(socket: Socket): Connection {
  const connection: Connection = {
    lookedUpMs: null,
    connectedMs: null,
    securedMs: null,
    remoteAddress: null,
    requests: 0,
  };
  bySocket.set(socket, connection);
  socket.once('lookup', (error: Error | null) => {
    if (!error) connection.lookedUpMs = performance.now();
  });
  socket.once('connect', () => {
    connection.connectedMs = performance.now();
    connection.remoteAddress = socket.remoteAddress ?? null;
  });
  socket.once('secureConnect', () => {
    connection.securedMs = performance.now();
  });
  return connection;
}

subscribe('undici:client:sendHeaders', (message) => {
  const { request, socket } = message as DiagnosticsChannel.ClientSendHeadersMessage & {
    request: { body?: unknown };
  };
  const connection = bySocket.get(socket);
  if (connection === undefined) return;
  connection.requests += 1;
  const trace = (request.body as TracedBody | null | undefined)?.[TRACE];
  if (trace === undefined) return;
  trace.connection = connection;
  trace.reused = connection.requests > 1;
});

/**
 * Maximum number of open dispatchers. Beyond this number, the least recently used dispatcher is closed once its
 * requests have ended.
 */
const MAX_DISPATCHERS = 1_000;

export interface TeamDispatchers {
  of(teamId: string): Dispatcher;
  /** Ends all connections. */
  destroy(): Promise<void>;
}

export function createTeamDispatchers(options: {
  policy: AddressPolicy;
  resolver: Resolver;
}): TeamDispatchers {
  const { policy, resolver } = options;
  /** Least recently used first. */
  const dispatchers = new Map<string, Dispatcher>();
  const closing = new Set<Dispatcher>();

  const open = (teamId: string) =>
    createGuardedDispatcher({
      policy,
      resolver: { resolve: (hostname) => resolver.resolve(hostname, teamId) },
    });

  function closeOldest(): void {
    for (const [teamId, dispatcher] of dispatchers.entries().take(1)) {
      dispatchers.delete(teamId);
      closing.add(dispatcher);
      const closed = () => void closing.delete(dispatcher);
      dispatcher.close().then(closed, closed);
    }
  }

  return {
    of(teamId) {
      const dispatcher = dispatchers.get(teamId) ?? open(teamId);
      dispatchers.delete(teamId);
      dispatchers.set(teamId, dispatcher);
      if (dispatchers.size > MAX_DISPATCHERS) closeOldest();
      return dispatcher;
    },
    async destroy() {
      const all = [...dispatchers.values(), ...closing];
      dispatchers.clear();
      await Promise.all(all.map((dispatcher) => dispatcher.destroy()));
    },
  };
}
