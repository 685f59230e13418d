/** Headers for browsers: which origins may call this service (CORS), and what its own pages may do. */
import { randomBytes } from 'node:crypto';

/** Response headers that pages of other origins may read, in addition to those that CORS always exposes. */
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
/** Request headers that pages of other origins may send. */
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
 * The headers that let the requesting page read the response; none for origins that are not allowed. Pages send the key
 * themselves, so credentials (cookies) are never allowed.
 *
 * @param origin the origin of the request
 * @param origins allowed origins as browsers write them (`https://app.example.com`), or `*` for all
 * @param allow the methods of the path, for a preflight request
 */
export function corsHeaders(
  origin: string | undefined,
  origins: readonly string[],
  allow?: string,
): Record<string, string> {
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

/** Headers for the files and pages of the dashboard and the guide, and for the API that they call. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
};

/** Headers for feeds, whose addresses are secrets that must not spread, and for errors at these addresses. */
export const FEED_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'private, no-cache',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow, noarchive',
};

/** A `Content-Security-Policy`: pages load only from this service; inline styles need the nonce. */
export function contentPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}

export function newNonce(): string {
  return randomBytes(16).toString('base64');
}
