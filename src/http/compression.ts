/** Compresses answers that are made as one text, such as lists, events, metrics and documents, off the event loop. */
import { compress, type Encoding } from '../records/encodings.ts';
import { acceptedEncoding } from './negotiate.ts';
import type { Reply, Request } from './server/exchange.ts';

/** Below this a compressed answer saves no packet. */
const LEAST_BYTES = 1_024;
const TEXTS = /^(?:text\/(?!event-stream)|application\/(?:json|yaml|problem\+json))/;

/**
 * Chooses how this text is sent, and sets the headers for that.
 *
 * @param bytes its length
 */
export function chooseEncoding(request: Request, reply: Reply, bytes: number): Encoding {
  if (bytes < LEAST_BYTES) return 'identity';
  reply.vary('accept-encoding');
  const encoding = acceptedEncoding(request.headers['accept-encoding']);
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  return encoding;
}

/** The text as it is sent. What an operation has encoded by itself has an `ETag`, which names the encoding. */
export function compressed(request: Request, reply: Reply, text: string): string | Promise<Uint8Array> {
  if (Buffer.byteLength(text) < LEAST_BYTES || reply.hasHeader('etag') || reply.hasHeader('content-encoding'))
    return text;
  if (!TEXTS.test(String(reply.getHeader('content-type')))) return text;
  const encoding = chooseEncoding(request, reply, Buffer.byteLength(text));
  return encoding === 'identity' ? text : compress(Buffer.from(text), encoding);
}
