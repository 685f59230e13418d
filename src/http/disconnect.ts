/** Ends work for clients that disconnect. */
import type { Call } from './route.ts';

/** Aborts when the connection closes, at the latest after the answer; with that reason, if there is one. */
export function disconnectSignal({ reply }: Pick<Call, 'reply'>, reason?: Error): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort(reason);
  reply.raw.once('close', () => gone.abort(reason));
  return gone.signal;
}
