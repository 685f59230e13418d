/** `ETag` and `If-Match` of answers that show one thing. Those of whole data are made in `data-headers.ts`. */
import { createHash } from 'node:crypto';
import { Problem } from '../model/error.ts';
import { matchesTag } from './conditional.ts';
import type { Call, Parameter } from './route.ts';

/** Describes the header that `checkIfMatch` reads. */
export const IF_MATCH: Parameter = {
  name: 'if-match',
  in: 'header',
  description: 'The `ETag` of the answer that the change rests on',
  schema: { type: 'string' },
};

/**
 * Answers a GET with an `ETag`, or with 304 when the client already has this very text.
 *
 * @param text the thing as JSON
 * @param settings the part that a change may depend on, if that is less than the text: `If-Match` compares only this
 */
export function sendWithETag({ request, reply }: Call, text: string, settings?: string): unknown {
  const tag = settings === undefined ? `"${digest(text)}"` : `"${digest(settings)}.${digest(text)}"`;
  reply.headers({ etag: tag, 'cache-control': 'private, no-cache' });
  if (matchesTag(request.headers['if-none-match'], tag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(text);
}

/**
 * Whether the request is conditional, on the state that the client has seen.
 *
 * @param settings as given to `sendWithETag`
 * @throws Problem `precondition_failed` when the settings have changed since
 */
export function checkIfMatch({ request }: Call, settings: string): boolean {
  const value = request.headers['if-match'];
  if (value === undefined || value.trim() === '*') return false;
  const isSame = [...value.matchAll(/"([^"]*)"/g)].some(([, tag]) => tag?.split('.')[0] === digest(settings));
  if (!isSame) throw new Problem('precondition_failed');
  return true;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
