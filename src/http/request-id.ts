/** The id of a request, in its answer and in the log. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The client's own `x-request-id` if it is safe to log, else a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID();
}
