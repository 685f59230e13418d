/**
 * `Expect: 100-continue`: a client that sends it waits with the body until it is invited. It is invited when an
 * operation begins to read the body, which is after the key was checked, and not if the body is too large.
 */
import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/** Lets requests in without the invitation that Node would send at once; other expectations are ignored. */
export function holdContinue(server: HttpServer): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  });
  // Otherwise Node answers them with 417.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/** Whether the client has not been asked for the body yet. */
export function isUninvited(request: IncomingMessage): boolean {
  return waiting.has(request);
}

/** Asks the client for the body, if it waits for that. */
export function inviteBody(request: IncomingMessage): void {
  const response = waiting.get(request);
  waiting.delete(request);
  if (response !== undefined && !response.headersSent) response.writeContinue();
}
