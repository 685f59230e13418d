/** Records the connection that a request used: its remote address and when each phase of connecting was done. */
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { DiagnosticsChannel } from 'undici';

/** One connection. Times are those of `performance.now()`; null until it has happened. */
export interface Connection {
  /** The name was resolved; stays null for an IP literal. */
  lookedUpMs: number | null;
  connectedMs: number | null;
  /** The TLS handshake was done; stays null for plain HTTP. */
  securedMs: number | null;
  remoteAddress: string | null;
  /** How many requests were written to it. */
  requests: number;
}

/** One request that is traced. */
export interface RequestTrace {
  /** The connection that it was written to; null until then. */
  connection: Connection | null;
  /** Whether the connection had carried an earlier request. */
  reused: boolean;
}

const bySocket = new WeakMap<Socket, Connection>();
const byError = new WeakMap<Error, Connection>();
/** Stored on the body itself: a WeakMap with thousands of new entries a second burdens the garbage collector. */
const TRACE = Symbol('trace');
type TracedBody = Uint8Array & { [TRACE]?: RequestTrace };

/**
 * Traces the request that is sent with this body. Undici reports the socket of a request only through its
 * diagnostics channel, where the body's buffer identifies the request: use a buffer for one request at a time.
 */
export function traceRequest(body: Uint8Array): RequestTrace {
  const trace: RequestTrace = { connection: null, reused: false };
  (body as TracedBody)[TRACE] = trace;
  return trace;
}

/** The connection attempt that failed with this error, if the error comes from one. */
export function connectionOf(error: unknown): Connection | undefined {
  return error instanceof Error ? byError.get(error) : undefined;
}

/** Records the phases of a connecting socket. Called by the dispatcher. */
export function watchSocket(socket: Socket): Connection {
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

/** Ties a failed connection attempt to its error, for `connectionOf`. Called by the dispatcher. */
export function rememberFailure(error: Error, connection: Connection): void {
  byError.set(error, connection);
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
