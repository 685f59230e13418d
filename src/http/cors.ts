/** Cross-origin requests (CORS): which other origins' pages may call this service from a browser. None by default. */
import type { IncomingMessage } from 'node:http';

/** Response headers that such pages may read, besides those that CORS always exposes. */
const EXPOSED = [
  'content-range',
  'etag',
  'link',
  'location',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'x-data-version',
  'x-error-code',
  'x-job-id',
  'x-job-reason',
  'x-request-id',
  'x-sample',
  'x-total-count',
  'x-webhook-id',
].join(', ');
/** Request headers that they may send. */
const SENT = [
  'accept',
  'content-encoding',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'last-event-id',
  'range',
  'x-api-key',
  'x-request-id',
].join(', ');
const PREFLIGHT_S = 600;

/**
 * The headers that let the requesting page read the answer; none for origins that are not allowed. Pages send the key
 * themselves, so credentials (cookies) are never allowed.
 *
 * @param origins as browsers write them (`https://app.example.com`), or `*` alone for all
 * @param allow the methods of the path, for a preflight request
 */
export function corsHeaders(
  request: IncomingMessage,
  origins: readonly string[],
  allow?: string,
): Record<string, string> {
  const { origin } = request.headers;
  if (origins.length === 0) return {};
  const isAny = origins.includes('*');
  if (origin === undefined || !(isAny || origins.includes(origin))) return {};
  return {
    'access-control-allow-origin': isAny ? '*' : origin,
    'access-control-expose-headers': EXPOSED,
    ...(allow === undefined
      ? {}
      : {
          'access-control-allow-methods': allow,
          'access-control-allow-headers': SENT,
          'access-control-max-age': String(PREFLIGHT_S),
        }),
  };
}
