/** `ETag`, `If-Match`, and conditional and range requests (RFC 9110). */
import { createHash } from 'node:crypto';
import { Problem } from '../model/error.ts';
import { compress, type Encoding } from '../records/formats.ts';
import { chooseEncoding } from './negotiate.ts';
import type { Call, Parameter } from './route.ts';

/** Whether `If-None-Match` contains this tag, weak or strong. `*` matches every tag. */
export function matchesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch === tag || ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(/(?:W\/)?("[^"]*")/g)].some(([, one]) => one === tag);
}

/**
 * The requested bytes, `end` excluded. Undefined when the whole body should be sent: the request has no range, several
 * ranges, an invalid range, or an `If-Range` with a different tag.
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

/** The header that `checkIfMatch` reads. */
export const IF_MATCH: Parameter = {
  name: 'if-match',
  in: 'header',
  description: 'Makes the change only if the resource still has this `ETag`; returns 412 otherwise',
  schema: { type: 'string' },
};

/**
 * Responds to a GET with an `ETag`, or with 304 when the client already has the same text.
 *
 * @param text the resource as JSON
 * @param settings the part of the resource that `If-Match` compares; by default the whole text
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

/** A text that does not change while the process runs. It is compressed once per encoding. */
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

  /** Responds with the text, or with 304. */
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

/** Each encoding has its own tag, because the bytes differ. */
function tagOf(name: string, encoding: Encoding): string {
  return encoding === 'identity' ? `"${name}"` : `"${name}-${encoding}"`;
}

/**
 * Checks `If-Match`. Returns whether the request is conditional.
 *
 * @param settings as passed to `sendWithETag`
 * @throws Problem `precondition_failed` when the settings have changed since the client read them
 */
export function checkIfMatch({ request }: Call, settings: string): boolean {
  const value = request.headers['if-match'];
  if (value === undefined || value.trim() === '*') return false;
  const isSame = [...value.matchAll(/"([^"]*)"/g)].some(([, tag]) => tag?.split('.')[0] === digest(settings));
  if (!isSame) throw new Problem('precondition_failed');
  return true;
}

/** A short text that differs for different texts, for tags. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
