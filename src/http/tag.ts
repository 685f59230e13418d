/** The `ETag` of one thing: what it is called when a client asks again, or changes what it has seen. */
import { createHash } from 'node:crypto';
import { Problem } from '../model/error.ts';
import { matchesTag } from './conditional.ts';
import type { Call } from './route.ts';

/**
 * Answers a GET of one thing: 304 when the client has this very text already.
 *
 * @param text the thing as JSON
 * @param settings what a change may depend on, when that is less than all that is shown: `If-Match` compares it alone
 */
export function sendTagged({ request, reply }: Call, text: string, settings?: string): unknown {
  const tag = settings === undefined ? `"${digest(text)}"` : `"${digest(settings)}.${digest(text)}"`;
  reply.headers({ etag: tag, 'cache-control': 'private, no-cache' });
  if (matchesTag(request.headers['if-none-match'], tag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(text);
}

/**
 * Whether the request depends on how the thing is.
 *
 * @param settings as it was given to `sendTagged`
 * @throws Problem `precondition_failed` when it is not any more as the client has seen it
 */
export function checkIfMatch({ request }: Call, settings: string): boolean {
  const value = request.headers['if-match'];
  if (value === undefined) return false;
  if (value.trim() === '*') return false;
  const isSame = [...value.matchAll(/"([^"]*)"/g)].some(([, tag]) => tag?.split('.')[0] === digest(settings));
  if (!isSame) throw new Problem('precondition_failed');
  return true;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
