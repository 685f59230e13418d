/** Compresses answers that are made as one text, such as lists, events, metrics and documents, off the event loop. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { compress, type Encoding } from '../records/encodings.ts';
import { acceptedEncoding } from './negotiate.ts';
import { addVary } from './vary.ts';

/** Below this a compressed answer saves no packet. */
const LEAST_BYTES = 1_024;
const TEXTS = /^(?:text\/(?!event-stream)|application\/(?:json|yaml|problem\+json))/;

/**
 * Chooses how this text is sent, and sets the headers for that.
 *
 * @param bytes its length
 */
export function chooseEncoding(request: FastifyRequest, reply: FastifyReply, bytes: number): Encoding {
  if (bytes < LEAST_BYTES) return 'identity';
  addVary(reply, 'accept-encoding');
  const encoding = acceptedEncoding(request.headers['accept-encoding']);
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  return encoding;
}

/** Compresses every answer that no operation has encoded by itself: those have an `ETag`, which names the encoding. */
export function compressAnswers(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply, payload) => {
    if (typeof payload !== 'string' || reply.hasHeader('etag') || reply.hasHeader('content-encoding')) {
      return payload;
    }
    if (!TEXTS.test(String(reply.getHeader('content-type')))) return payload;
    const encoding = chooseEncoding(request, reply, Buffer.byteLength(payload));
    return encoding === 'identity' ? payload : compress(Buffer.from(payload), encoding);
  });
}
