/** Reads a request's JSON body, within a bound, where an operation asks for it. */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../model/error.ts';

export const MAX_BODY_BYTES = 64 * 1_024;
/**
 * What is read and thrown away of a larger body before it is refused. A connection that is closed on unread
 * bytes is reset, and a reset takes the answer with it.
 */
const MAX_DISCARDED_BYTES = 16 * 1_048_576;

/** A body: a JSON object, none at all, or something else, with what is wrong with it. */
export type Body =
  | { kind: 'object'; value: Record<string, unknown> }
  | { kind: 'empty' }
  | { kind: 'other'; mistake: string };

/**
 * Reads the whole body.
 *
 * @throws Problem `body_too_large`, and the connection is closed after the answer; `request_malformed` when the
 *   client went away
 */
export async function readBody(request: IncomingMessage): Promise<Body> {
  const bytes = await readBytes(request);
  if (bytes.length === 0) return { kind: 'empty' };
  if (!isJson(request.headers['content-type'])) {
    return {
      kind: 'other',
      mistake: 'Send the body as JSON, with the header `content-type: application/json`',
    };
  }
  const value = parse(bytes);
  if (value === undefined) return { kind: 'other', mistake: 'The request body is not valid JSON in UTF-8' };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { kind: 'other', mistake: 'The request body must be a JSON object' };
  }
  return { kind: 'object', value: value as Record<string, unknown> };
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length;
      if (size <= MAX_BODY_BYTES) chunks.push(chunk as Buffer);
      else if (size > MAX_DISCARDED_BYTES) break;
      else chunks.length = 0;
    }
  } catch (cause) {
    throw new Problem('request_malformed', { sentence: 'The request body ended too early', cause });
  }
  if (size > MAX_BODY_BYTES) throw new Problem('body_too_large', { headers: { connection: 'close' } });
  return Buffer.concat(chunks);
}

/** `application/json` and `application/…+json` (RFC 6839), whatever parameters follow. */
function isJson(contentType: string | undefined): boolean {
  return /^\s*application\/(?:[\w!#$&^.-]+\+)*json\s*(?:;|$)/i.test(contentType ?? '');
}

/** Nothing when the bytes are not JSON. A byte order mark is left out, as RFC 8259, section 8.1 allows. */
function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    return undefined;
  }
}
