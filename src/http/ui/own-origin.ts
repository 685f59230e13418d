/** Protection against cross-site request forgery: browsers send the session cookie whichever page makes the request. */
import { Problem } from '../../model/error.ts';
import type { Request } from '../server/exchange.ts';

/** Where clients reach this service. */
export interface Place {
  publicUrl(): string;
}

/** Content types that any page can send with a plain form, without a preflight request: they are refused. */
const FORM_TYPES = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(?:;|$)/i;

/**
 * Refuses requests from foreign pages. Browsers say where a request comes from: in `sec-fetch-site` (over TLS and to
 * loopback) and in `origin` (of every write). Reads may also have no origin, as when somebody types the address.
 *
 * @throws Problem `origin_refused`, or `content_unsupported` for a body that a form could have sent
 */
export function requireOwnOrigin(place: Place, request: Request): void {
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

/** Whether the client uses TLS, as far as is known: to this server, or to a proxy at the public URL. */
export function isSecure(place: Place, request: Request): boolean {
  if (request.protocol === 'https') return true;
  const { protocol, host } = new URL(place.publicUrl());
  return protocol === 'https:' && host === request.headers.host;
}

function isOwnOrigin(place: Place, { headers, protocol, host }: Request): boolean {
  const { origin } = headers;
  if (origin === undefined) return false;
  return origin === `${protocol}://${host}` || origin === new URL(place.publicUrl()).origin;
}

function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
