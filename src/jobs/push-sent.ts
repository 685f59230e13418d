/** What a push has sent, as a hash: a repeated push is compared with the first one that had its idempotency key. */
import { createHash, type Hash } from 'node:crypto';
import { Problem } from '../model/error.ts';
import { MalformedError } from '../std/lines.ts';
import type { Push } from './push-job.ts';
import { decoded } from './push-records.ts';
import { untilAborted } from './push-streams.ts';

/**
 * A hash for the uncompressed body of a push, beginning with how the body is to be read. Compression is left out: a
 * client that compresses again may send other bytes for the same records.
 */
export function hashOf({ format, mode }: Pick<Push, 'format' | 'mode'>): Hash {
  return createHash('sha256').update(`${format} ${mode ?? ''}\n`);
}

/**
 * Reads the body of a push whose key has published before.
 *
 * @param first the hash of what that push has sent
 * @param limits.timeoutMs for the whole body
 * @throws Problem `idempotency_key_reused` when it is another body; `push_timeout`; whatever the body throws
 */
export async function refuseOtherBody(
  push: Push,
  first: string,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  const hash = hashOf(push);
  const abort = new AbortController();
  const deadline = setTimeout(() => abort.abort(new Problem('push_timeout')), timeoutMs);
  try {
    const body = untilAborted(decoded(push.bytes, push.encoding), AbortSignal.any([signal, abort.signal]));
    for await (const chunk of body) hash.update(chunk);
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error;
    throw new Problem('idempotency_key_reused', { cause: error });
  } finally {
    clearTimeout(deadline);
  }
  if (hash.digest('hex') !== first) throw new Problem('idempotency_key_reused');
}
