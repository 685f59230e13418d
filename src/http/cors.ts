/** Cross-origin requests: which pages of other origins a browser may let call this service. None, unless told. */
import type { IncomingMessage } from 'node:http';

/** What a page may read of an answer beyond what every page may. */
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
 * The headers with which a browser lets the page that asks read the answer; none for other origins. Keys are sent by
 * the page itself, so cookies are never allowed.
 *
 * @param origins as browsers write them (`https://app.example.com`), or `*` alone for all
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
