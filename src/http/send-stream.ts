/** Sends a body of unknown length as it is produced, with back-pressure. */
import { Readable } from 'node:stream';
import type { Call } from './route.ts';

/**
 * The framework pauses the stream while the client is slow, destroys it when the client disconnects, and destroys the
 * socket when the stream fails after the first byte: an incomplete body never looks like a whole one.
 */
export function sendStream(call: Call, bytes: AsyncIterable<Uint8Array>): unknown {
  const stream = Readable.from(bytes, { objectMode: false });
  stream.on('error', (err) => {
    if (!call.request.raw.socket.destroyed) logInterrupted(call, err);
  });
  return call.reply.send(stream);
}

/** Logs that an answer was cut off midway, and why. */
export function logInterrupted({ services, request, params }: Call, err: unknown): void {
  services.log.error({ err, requestId: request.id, workflowId: params.workflowId }, 'data.interrupted');
}
