/** Sends requests to the service, and turns its errors into errors of Zapier. */

/** @import { Bundle, HttpResponse, ZObject } from 'zapier-platform-core' */

/** Zapier ends a step after 30 s. The error about a missing response must come earlier. */
const TIMEOUT_MS = 20_000;
/** The default without `retry-after`. */
const RETRY_S = 60;
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * @typedef {object} Question
 * @property {string} path starting with `/v1`, with its query
 * @property {'GET' | 'POST' | 'DELETE'} [method]
 * @property {Record<string, string>} [headers]
 * @property {object} [body] sent as JSON
 * @property {number} [timeoutMs]
 * @property {readonly number[]} [accept] statuses from 300 that are not errors
 */

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {Question} question
 * @returns {Promise<HttpResponse>} with `data` for JSON
 * @throws ExpiredAuthError if the key is not valid, ThrottledError if a later retry may succeed, `z.errors.Error` with the
 *   service's own message for everything else
 */
export async function ask(z, bundle, question) {
  const base = baseUrl(z, bundle);
  const { path, method = 'GET', headers = {}, body, timeoutMs = TIMEOUT_MS, accept = [] } = question;
  /** @type {HttpResponse} */
  let response;
  try {
    response = await z.request({
      url: base + path,
      method,
      headers: {
        accept: 'application/json',
        'x-api-key': bundle.authData.apiKey ?? '',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      // As bytes: the platform interprets curly braces in a string, and would refuse records that contain them.
      ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
      timeout: timeoutMs,
      // The key must be sent only to the address that was entered.
      redirect: 'manual',
      skipThrowForStatus: true,
      // Our own error has the message of the service. The types do not include this option yet.
      ...{ throwForThrottlingEarly: false },
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new z.errors.Error(
      `Flowhook cannot be reached at ${base}: ${reason}. Check that it is running, and that Zapier can reach that address`,
      'Unreachable',
    );
  }
  if (response.status < 300 || accept.includes(response.status)) return response;
  throw refusal(z, base, response);
}

/**
 * The address that was entered, without a trailing slash or `/v1`.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 */
export function baseUrl(z, bundle) {
  const entered = (bundle.authData.baseUrl ?? '').trim();
  const url = URL.parse(entered);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new z.errors.Error(
      `"${entered}" is not a URL. Enter the base URL of Flowhook, such as https://flowhook.example.com`,
      'BaseUrl',
    );
  }
  if (url.protocol === 'http:' && !LOOPBACK.has(url.hostname)) {
    throw new z.errors.Error(
      'The base URL must start with https://, because requests contain the API key and your records',
      'BaseUrl',
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/**
 * The cursor of the next page.
 *
 * @param {HttpResponse} response
 * @returns {string | null} null on the last page
 */
export function nextCursor(response) {
  for (const one of (response.getHeader('link') ?? '').split(',')) {
    const address = /^\s*<([^>]*)>\s*;\s*rel="?next"?/.exec(one)?.[1];
    // Uses only the cursor: a link may name another host, and the key must not be sent there.
    if (address !== undefined)
      return URL.parse(address, 'https://any.invalid')?.searchParams.get('cursor') ?? null;
  }
  return null;
}

/**
 * @param {ZObject} z
 * @param {string} base
 * @param {HttpResponse} response
 */
function refusal(z, base, response) {
  const { status } = response;
  const code = response.getHeader('x-error-code') ?? `Http${status}`;
  if (status < 400) {
    const target = response.getHeader('location') ?? 'another address';
    return new z.errors.Error(
      `${base} redirects to ${target}. Enter the address that it redirects to as the base URL`,
      'Redirected',
      status,
    );
  }
  const sentence = typeof response.data?.error === 'string' ? response.data.error : undefined;
  if (code === 'scope_missing') {
    return new z.errors.Error(
      `${sentence}. Connect a key with the scopes read, queue and webhooks`,
      code,
      status,
    );
  }
  if (status === 401) {
    return new z.errors.ExpiredAuthError(
      'Flowhook does not accept this API key: it is incomplete, revoked or expired. Connect again with another key',
    );
  }
  const retryAfter = Number.parseInt(response.getHeader('retry-after') ?? '', 10);
  if (status === 429 || status === 503 || Number.isFinite(retryAfter)) {
    const delay = Number.isFinite(retryAfter) ? Math.max(1, retryAfter) : RETRY_S;
    return new z.errors.ThrottledError(
      sentence ?? `Flowhook returned ${status}. Zapier retries later`,
      delay,
    );
  }
  if (sentence === undefined) {
    return new z.errors.Error(
      `${base} returned ${status}, but it does not look like Flowhook. Check the base URL`,
      code,
      status,
    );
  }
  return new z.errors.Error(sentence, code, status);
}
