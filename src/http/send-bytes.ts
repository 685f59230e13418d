/** Sends a body of any length: with back-pressure, and broken off rather than ended early when it fails. */
import type { Readable } from 'node:stream';
import type { Call } from './route.ts';

/**
 * The framework pauses the stream while the client is slow, destroys it when the client goes, and destroys the
 * socket when it fails after the first byte: what was not sent whole never looks as if it was.
 */
export function sendBytes(call: Call, bytes: Readable): unknown {
  bytes.on('error', (err) => {
    if (!call.request.raw.socket.destroyed) interrupted(call, err);
  });
  return call.reply.send(bytes);
}

/** Notes that an answer was broken off, and why. */
export function interrupted({ services, request, params }: Call, err: unknown): void {
  services.log.error({ err, requestId: request.id, workflowId: params.workflowId }, 'data.interrupted');
}

/** Aborts when the client goes before it has its answer, for that reason. */
export function leaving({ reply }: Pick<Call, 'reply'>, reason?: Error): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort(reason);
  reply.raw.once('close', () => gone.abort(reason));
  return gone.signal;
}
