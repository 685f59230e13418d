/** The id under which a request is answered and logged. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The client's own `x-request-id` where it is harmless in a log line, else a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID();
}
