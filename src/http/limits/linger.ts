/**
 * What becomes of a body that has not been read to its end when its request is answered. Closing on unread bytes resets
 * the connection, and loses the answer; reading on without bound gives a refused client all the bandwidth it wants.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** How much more is read and discarded. */
export interface LingerBounds {
  ms: number;
  bytes: number;
}

const UNREAD: LingerBounds = { ms: 10_000, bytes: 16 * 1_048_576 };
const LOOK_EVERY_MS = 25;

/** Bounds how much is read of a body after the answer to it, for every request. */
export function boundUnread(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => lingerOn(request, UNREAD));
}

/** Discards the rest of the body within the bounds, and then closes the connection. */
export function lingerOn(request: IncomingMessage, { ms, bytes }: LingerBounds): void {
  if (request.complete || request.destroyed) return;
  const { socket } = request;
  const start = socket.bytesRead;
  // An iterator that was abandoned still listens: `resume` has no effect.
  request.on('data', () => {});
  request.resume();
  const end = performance.now() + ms;
  const look = setInterval(() => {
    // The connection itself gets no listener: it may see thousands of requests.
    if (socket.destroyed) clearInterval(look);
    if (performance.now() < end && socket.bytesRead - start <= bytes) return;
    clearInterval(look);
    socket.destroy();
  }, LOOK_EVERY_MS);
  for (const event of ['end', 'close']) request.once(event, () => clearInterval(look));
}
