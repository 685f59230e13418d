/** `ETag` and `If-Match` of answers that show one thing. Those of whole data are made in `data-headers.ts`. */
import { createHash } from 'node:crypto';
import { Problem } from '../model/error.ts';
import { compress, type Encoding } from '../records/encodings.ts';
import { chooseEncoding } from './compression.ts';
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
export async function sendWithETag(
  { request, reply }: Call,
  text: string,
  settings?: string,
): Promise<unknown> {
  const bytes = Buffer.from(text);
  const encoding = chooseEncoding(request, reply, bytes.length);
  const name = settings === undefined ? digest(text) : `${digest(settings)}.${digest(text)}`;
  reply.header('cache-control', 'private, no-cache').type('application/json; charset=utf-8');
  const body = () => (encoding === 'identity' ? bytes : compress(bytes, encoding));
  return sendTagged({ request, reply }, { tag: tagOf(name, encoding), body });
}

/** A text that stays the same while the process runs: compressed once for each encoding. */
export class ConstantText {
  readonly #type: string;
  readonly #bytes: Buffer;
  readonly #name: string;
  readonly #compressed = new Map<Encoding, Promise<Uint8Array>>();

  constructor(type: string, text: string) {
    this.#type = type;
    this.#bytes = Buffer.from(text);
    this.#name = digest(text);
  }

  /** Answers with the text, or with 304. */
  async send({ request, reply }: Pick<Call, 'request' | 'reply'>): Promise<unknown> {
    const encoding = chooseEncoding(request, reply, this.#bytes.length);
    reply.header('cache-control', 'no-cache').type(this.#type);
    const body = () => this.#encoded(encoding);
    return sendTagged({ request, reply }, { tag: tagOf(this.#name, encoding), body });
  }

  async #encoded(encoding: Encoding): Promise<Uint8Array> {
    if (encoding === 'identity') return this.#bytes;
    const known = this.#compressed.get(encoding) ?? compress(this.#bytes, encoding, { isKept: true });
    this.#compressed.set(encoding, known);
    return known;
  }
}

async function sendTagged(
  { request, reply }: Pick<Call, 'request' | 'reply'>,
  { tag, body }: { tag: string; body(): Promise<Uint8Array> | Uint8Array },
): Promise<unknown> {
  reply.header('etag', tag);
  if (!matchesTag(request.headers['if-none-match'], tag)) return reply.send(await body());
  return reply.removeHeader('content-encoding').removeHeader('content-type').code(304).send();
}

/** Each encoding has a tag of its own: the bytes differ. */
function tagOf(name: string, encoding: Encoding): string {
  return encoding === 'identity' ? `"${name}"` : `"${name}-${encoding}"`;
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
