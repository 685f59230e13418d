/** `ETag` and `If-Match` of answers that show one thing; conditional and range requests in general (RFC 9110). */
import { createHash } from 'node:crypto';
import { Problem } from '../model/error.ts';
import { compress, type Encoding } from '../records/formats.ts';
import { chooseEncoding } from './negotiate.ts';
import type { Call, Parameter } from './route.ts';

/** Whether `If-None-Match` names this tag, weak or strong. `*` names every tag. */
export function matchesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(/(?:W\/)?("[^"]*")/g)].some(([, one]) => one === tag);
}

/**
 * The requested bytes, `end` excluded; undefined when the whole body is to be sent: without a range, with several, with
 * one that cannot be parsed, or with an `If-Range` that names another tag.
 *
 * @throws Problem `range_not_satisfiable`
 */
export function rangeOf(
  headers: { range?: string | undefined; 'if-range'?: string | string[] | undefined },
  body: { tag: string; bytes: number },
): { start: number; end: number } | undefined {
  const found = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(headers.range ?? '');
  if (found === null) return undefined;
  if (headers['if-range'] !== undefined && headers['if-range'] !== body.tag) return undefined;
  const [, from = '', to = ''] = found;
  if (from === '' && to === '') return undefined;
  const start = from === '' ? Math.max(0, body.bytes - Number(to)) : Number(from);
  const end = from === '' || to === '' ? body.bytes : Math.min(body.bytes, Number(to) + 1);
  if (from !== '' && to !== '' && Number(to) < start) return undefined;
  if (start >= body.bytes || end === start) {
    throw new Problem('range_not_satisfiable', { headers: { 'content-range': `bytes */${body.bytes}` } });
  }
  return { start, end };
}

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
