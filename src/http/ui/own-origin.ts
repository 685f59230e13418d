/** Whether a request comes from a page of ours: a session is shown by the browser, whoever made it ask. */
import type { FastifyRequest } from 'fastify';
import { Problem } from '../../model/error.ts';

/** Where this service is, as others see it. */
export interface Place {
  publicUrl(): string;
}

/** What a form of any page can send without asking: such bodies are not taken. */
const FORM_TYPES = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(?:;|$)/i;

/**
 * Browsers say where a request comes from, in `sec-fetch-site` (to addresses with TLS and to loopback) and in `origin`
 * (of every write). What only reads may also come from nowhere: an address that somebody typed, a download.
 *
 * @throws Problem `origin_refused`, or `content_unsupported` for a body that a form could have sent
 */
export function requireOwnOrigin(place: Place, request: FastifyRequest): void {
  const { headers, method } = request;
  const site = headers['sec-fetch-site'];
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead) {
    if (site === 'cross-site' || site === 'same-site') throw new Problem('origin_refused');
    return;
  }
  const isOurs = site === undefined ? isOwnOrigin(place, request) : site === 'same-origin';
  if (!isOurs) throw new Problem('origin_refused');
  if (
    hasBody(request) &&
    (headers['content-type'] === undefined || FORM_TYPES.test(headers['content-type']))
  ) {
    throw new Problem('content_unsupported', {
      sentence: 'Send the body as JSON, with the header `content-type: application/json`',
    });
  }
}

/** Whether the request came by TLS, as far as it is known here. */
export function isSecure(place: Place, request: FastifyRequest): boolean {
  if (request.protocol === 'https') return true;
  const { protocol, host } = new URL(place.publicUrl());
  return protocol === 'https:' && host === request.headers.host;
}

function isOwnOrigin(place: Place, { headers, protocol, host }: FastifyRequest): boolean {
  const { origin } = headers;
  if (origin === undefined) return false;
  return origin === `${protocol}://${host}` || origin === new URL(place.publicUrl()).origin;
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
