/** Sends a built file, in the best encoding, with caching headers; 304 to clients that have it. */
import { readFile } from 'node:fs/promises';
import { Problem } from '../../model/error.ts';
import { matchesTag } from '../caching.ts';
import { acceptedOf } from '../negotiate.ts';
import type { Call } from '../route.ts';
import type { BuiltFile } from './built-files.ts';

const A_YEAR_S = 365 * 24 * 3_600;

/**
 * @param status instead of 200, for a file that stands in for a missing one
 * @throws Problem `not_ready` while another build takes its place
 */
export async function sendFile(
  request: Call['request'],
  reply: Call['reply'],
  { type, digest, isHashed, paths }: BuiltFile,
  status?: number,
): Promise<unknown> {
  const encoding = acceptedOf(request.headers['accept-encoding'], [...paths.keys()]) ?? 'identity';
  const tag = `"${digest.slice(0, 32)}-${encoding}"`;
  reply.headers({
    etag: tag,
    vary: 'accept-encoding',
    'cache-control': isHashed ? `public, max-age=${A_YEAR_S}, immutable` : 'no-cache',
  });
  if (status === undefined && matchesTag(request.headers['if-none-match'], tag))
    return reply.code(304).send();
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  const bytes = await readFile(paths.get(encoding) ?? '').catch((cause) => {
    // A new build is replacing the directory at this moment.
    throw new Problem('not_ready', { cause });
  });
  if (status !== undefined) reply.code(status);
  return reply.type(type).send(bytes);
}

/** Whether HTML is named, not merely accepted by a wildcard. */
export function acceptsHtml(accept: string | undefined): boolean {
  return /(?:^|,)\s*text\/html\s*(?:;|,|$)/i.test(accept ?? '');
}
