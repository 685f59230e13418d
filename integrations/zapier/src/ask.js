/** How every request reaches the service, and what becomes of its refusals. */

/** @import { Bundle, HttpResponse, ZObject } from 'zapier-platform-core' */

/** Zapier ends a step after 30 s: what does not answer has to be said before. */
const TIMEOUT_MS = 20_000;
/** Where `retry-after` does not say it. */
const RETRY_S = 60;
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * @typedef {object} Question
 * @property {string} path from `/v1` on, with its query
 * @property {'GET' | 'POST' | 'DELETE'} [method]
 * @property {Record<string, string>} [headers]
 * @property {object} [body] sent as JSON
 * @property {number} [timeoutMs]
 * @property {readonly number[]} [accept] statuses that are answers here, beside those below 300
 */

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {Question} question
 * @returns {Promise<HttpResponse>} with `data` for JSON
 * @throws ExpiredAuthError when the key is no longer good, ThrottledError when it is worth asking again later,
 *   `z.errors.Error` with the service's own sentence for everything else
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
      // As bytes: in a text the platform would look for curly braces of its own, and refuse records that have them.
      ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
      timeout: timeoutMs,
      // The key goes to the address that was entered, and to no other.
      redirect: 'manual',
      skipThrowForStatus: true,
      // Ours names the service and keeps its sentence. The types do not know this option yet.
      ...{ throwForThrottlingEarly: false },
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new z.errors.Error(
      `Flowhook cannot be reached at ${base}: ${reason}. Look whether it runs, and whether Zapier can reach that address`,
      'Unreachable',
    );
  }
  if (response.status < 300 || accept.includes(response.status)) return response;
  throw refusal(z, base, response);
}

/**
 * The address as it was entered, without what people copy along with it.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 */
export function baseUrl(z, bundle) {
  const entered = (bundle.authData.baseUrl ?? '').trim();
  const url = URL.parse(entered);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new z.errors.Error(
      `"${entered}" is not an address. Enter the base URL of Flowhook, such as https://flowhook.example.com`,
      'BaseUrl',
    );
  }
  if (url.protocol === 'http:' && !LOOPBACK.has(url.hostname)) {
    throw new z.errors.Error(
      'The base URL must begin with https://, for the API key and your records travel with every request',
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
    // Only the cursor is taken: a link may name another host, and the key must not go there.
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
      `${base} redirects to ${target}. Enter the address that answers itself as the base URL`,
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
      'Flowhook does not accept this API key: it is not the whole key, or it was revoked, or it has expired. Connect again with another one',
    );
  }
  const retryAfter = Number.parseInt(response.getHeader('retry-after') ?? '', 10);
  if (status === 429 || status === 503 || Number.isFinite(retryAfter)) {
    const delay = Number.isFinite(retryAfter) ? Math.max(1, retryAfter) : RETRY_S;
    return new z.errors.ThrottledError(sentence ?? `Flowhook answers ${status} for the moment`, delay);
  }
  if (sentence === undefined) {
    return new z.errors.Error(
      `${base} answers ${status}, and not in the way of Flowhook. Look whether that is its base URL`,
      code,
      status,
    );
  }
  return new z.errors.Error(sentence, code, status);
}
