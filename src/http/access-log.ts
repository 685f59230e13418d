/** Reports every request to the observer, once, when it is over. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Observer } from '../observe/observer.ts';
import type { Arrival } from './app.ts';

/**
 * Reports the end of a request, unless it was refused because of overload: method, path pattern, status, team and key
 * id; `aborted` when the client or an error cut the answer off. Never the key itself, and never the path as it was sent,
 * which may hold personal data.
 */
export function observeEnd(input: {
  observer: Observer;
  /** Epoch milliseconds. */
  now: () => number;
  request: FastifyRequest;
  reply: FastifyReply;
  arrival: Arrival;
}): void {
  const { observer, now, request, reply, arrival } = input;
  const { raw } = reply;
  const { socket } = request.raw;
  const startedAt = now();
  const startedMs = performance.now();
  const sentBefore = socket.bytesWritten;
  // `close` follows `finish`, and also comes when the connection broke.
  raw.once('close', () => {
    if (arrival.isShed) return;
    const code = reply.getHeader('x-error-code');
    observer.requestDone?.({
      requestId: request.id,
      method: request.method,
      route: arrival.match?.known.path ?? null,
      status: raw.statusCode,
      startedAt,
      durationMs: performance.now() - startedMs,
      sentBytes: socket.bytesWritten - sentBefore,
      teamId: arrival.teamId,
      keyId: arrival.keyId,
      errorCode: typeof code === 'string' ? code : null,
      aborted: !raw.writableFinished,
      ...arrival.traced,
    });
  });
}
