/** One line per request, written when it is over. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../observe/log.ts';
import type { Arrival } from './app.ts';

/** Health checks come every few seconds and would bury the rest. */
const QUIET = new Set(['/livez', '/readyz']);

/**
 * Logs `request.completed` at the end: method, path pattern, status, milliseconds, team, request id; `aborted`
 * when the client or an error broke the answer off. Never the key, never the path as it came.
 */
export function logAtEnd(input: {
  log: Logger;
  request: FastifyRequest;
  reply: FastifyReply;
  arrival: Arrival;
}): void {
  const { log, request, reply, arrival } = input;
  const route = arrival.match?.known.path ?? null;
  if (route !== null && QUIET.has(route)) return;
  const startedMs = performance.now();
  // `close` follows `finish`, and also comes when the connection broke.
  reply.raw.once('close', () => {
    const fields = {
      method: request.method,
      route,
      status: reply.raw.statusCode,
      ms: Math.round((performance.now() - startedMs) * 10) / 10,
      teamId: arrival.teamId,
      requestId: request.id,
    };
    log.info(reply.raw.writableFinished ? fields : { ...fields, aborted: true }, 'request.completed');
  });
}
