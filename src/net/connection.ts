/** What is known of the connection under a request: where it ended, and how long each phase of making it took. */
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { DiagnosticsChannel } from 'undici';

/** One connection. Times by `performance.now()`; null for what has not happened. */
export interface Connection {
  /** The name is looked up; stays null for an IP literal. */
  lookedUpMs: number | null;
  connectedMs: number | null;
  /** TLS is agreed upon; stays null for plain HTTP. */
  securedMs: number | null;
  remoteAddress: string | null;
  /** Requests that were written to it. */
  requests: number;
}

/** What became of one request that was traced. */
export interface RequestTrace {
  /** The connection that it was written to; null until then. */
  connection: Connection | null;
  /** The connection had carried a request before. */
  reused: boolean;
}

const bySocket = new WeakMap<Socket, Connection>();
const byError = new WeakMap<Error, Connection>();
/** On the body itself: a weak map of thousands a second is a burden on the garbage collector. */
const TRACE = Symbol('trace');
type TracedBody = Uint8Array & { [TRACE]?: RequestTrace };

/**
 * Follows the request that is sent with this body. Undici tells the socket of a request only through its
 * diagnostics channel, and the body's buffer is what ties the two together: it must belong to one request at a time.
 */
export function traceRequest(body: Uint8Array): RequestTrace {
  const trace: RequestTrace = { connection: null, reused: false };
  (body as TracedBody)[TRACE] = trace;
  return trace;
}

/** The connection that could not be made, given the error that came of it. */
export function connectionOf(error: unknown): Connection | undefined {
  return error instanceof Error ? byError.get(error) : undefined;
}

/** Watches a socket that is being connected. For the dispatcher. */
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

/** Notes that no connection came of it. For the dispatcher. */
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
