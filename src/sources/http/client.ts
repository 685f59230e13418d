/** Sends requests within the per-host limits that all jobs share, with redirects, cookies, time limits and retries. */
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { CookieJar } from '../../net/cookies.ts';
import type { HostTurns, Pace } from '../../net/host-turns.ts';
import { retryAfterMs } from '../../net/response-headers.ts';
import { request as sendRequest } from '../../net/undici.ts';
import { fullJitterMs } from '../../std/backoff.ts';
import { STATUS_CODES } from '../../std/http-names.ts';
import type { Redactor } from '../secrets.ts';
import { isAtOrigin } from './outbound.ts';
import { type HttpRequest, PLAIN_HEADERS, SourceError } from './request.ts';

const MAX_REDIRECTS = 10;
const ENCODINGS = 'gzip, br, zstd, deflate';
/** Time limit for the response headers, and for the pause between two chunks of the body. */
const SILENCE_MS = 60_000;
/** Headers that are sent only to trusted origins, although they contain no credentials. */
const TRUSTED_ONLY = ['user-agent', 'accept-language'];
/** Response headers that have a single value. If a response repeats one of them, the first value counts. */
const ONCE = ['retry-after', 'location', 'content-type', 'etag', 'last-modified'];
const MAX_EXCERPT_BYTES = 2_048;

export interface HttpResponse {
  status: number;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** The URL after redirects. */
  url: string;
  /** Must be read or destroyed. */
  body: Readable;
}

export interface ClientDeps {
  dispatcher: Dispatcher;
  turns: HostTurns;
  pace: Pace;
  /** Time limit for receiving a whole response. If null, there is no limit as long as bytes keep arriving. */
  answerMs: number | null;
  /** The cookies of this run. Undefined if the definition does not keep cookies. */
  cookies: CookieJar | undefined;
  /** The default user agent. */
  agent: string;
  /** Origins that may receive the headers, cookies and body of the definition. */
  trusted: ReadonlySet<string>;
  redactor: Redactor;
  signal: AbortSignal;
  log(level: 'debug' | 'info' | 'warn', text: string): void;
  /** Waits between two attempts. Rejects with the signal's reason. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** In [0, 1). */
  random(): number;
  /** Epoch milliseconds. */
  now(): number;
}

export interface Client {
  /**
   * Sends a request and returns its response if the status is 2xx, 304 after a conditional request, or one of
   * `accepted`. After any other response, the request is retried if a retry may help.
   *
   * @throws SourceError
   */
  send(request: HttpRequest, options?: { accepted?: readonly number[] }): Promise<HttpResponse>;
}

export function createClient(deps: ClientDeps): Client {
  const { signal } = deps;

  async function once(request: HttpRequest): Promise<HttpResponse> {
    let { method, url, headers, body } = request;
    for (let hops = 0; ; hops++) {
      const target = new URL(url);
      const trusted = isAtOrigin(target, deps.trusted);
      const sent: Record<string, string> = { 'user-agent': deps.agent, 'accept-encoding': ENCODINGS };
      for (const [name, value] of Object.entries(headers)) {
        if (trusted || (PLAIN_HEADERS.includes(name) && !TRUSTED_ONLY.includes(name))) sent[name] = value;
      }
      if (body !== null && !trusted) {
        throw new SourceError(
          `A redirect would send the request body to ${target.origin}, a host that the definition does not name`,
        );
      }
      const cookie = await deps.cookies?.header(url);
      if (cookie) sent.cookie = sent.cookie === undefined ? cookie : `${sent.cookie}; ${cookie}`;
      const response = await inTurn(target, { method, headers: sent, body });
      await deps.cookies?.store(response.setCookies, url);
      const location = response.headers.location;
      if (![301, 302, 303, 307, 308].includes(response.status) || location === undefined)
        return { ...response, url };
      discard(response);
      if (hops === MAX_REDIRECTS) {
        throw new SourceError(
          `${request.url} redirects more than ${MAX_REDIRECTS} times, most recently to ${location}`,
        );
      }
      const next = URL.parse(location, url);
      if (next === null || !/^https?:$/.test(next.protocol)) {
        throw new SourceError(`${url} redirects to ${JSON.stringify(location)}, which is not an HTTP URL`);
      }
      if (response.status < 307 && method !== 'GET') {
        method = 'GET';
        body = null;
        headers = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'content-type'));
      }
      url = next.href;
    }
  }

  async function inTurn(
    target: URL,
    request: { method: string; headers: Record<string, string>; body: string | null },
  ) {
    const leave = await deps.turns.enter(target.host, deps.pace, signal);
    const late = limitTime(target, deps.answerMs);
    try {
      const { statusCode, headers, body } = await sendRequest(target, {
        method: request.method as Dispatcher.HttpMethod,
        headers: request.headers,
        body: request.body,
        dispatcher: deps.dispatcher,
        headersTimeout: SILENCE_MS,
        bodyTimeout: SILENCE_MS,
        signal: late === undefined ? signal : AbortSignal.any([signal, late.signal]),
      });
      if (late !== undefined) body.once('close', late.clear);
      return {
        status: statusCode,
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [
            name,
            Array.isArray(value)
              ? ONCE.includes(name)
                ? (value[0] ?? '')
                : value.join(', ')
              : (value ?? ''),
          ]),
        ),
        setCookies: [headers['set-cookie'] ?? []].flat(),
        body: body as Readable,
      };
    } catch (error) {
      late?.clear();
      throw late?.signal.aborted && !signal.aborted ? late.signal.reason : error;
    } finally {
      leave();
    }
  }

  return {
    async send(request, { accepted = [] } = {}) {
      for (let tries = 1; ; tries++) {
        let response: HttpResponse | undefined;
        let failure: unknown;
        try {
          const startedAt = deps.now();
          response = await once(request);
          deps.log(
            'debug',
            `${request.method} ${request.url} ${response.status}, ${deps.now() - startedAt} ms`,
          );
          if (
            (response.status >= 200 && response.status < 300) ||
            (response.status === 304 && isConditional(request)) ||
            accepted.includes(response.status)
          ) {
            return response;
          }
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof SourceError) throw error;
          failure = error;
        }
        const retry: Retry = retryOf({
          request,
          response,
          failure,
          tries,
          random: deps.random(),
          nowMs: deps.now(),
        });
        if (response !== undefined && retry.again) discard(response);
        if (!retry.again) {
          const words = response === undefined ? '' : await excerptOf(response, deps.redactor);
          throw new SourceError(`${retry.sentence}${words}`, {
            cause: failure,
            ...(response === undefined ? {} : { status: response.status }),
          });
        }
        deps.log('warn', `${retry.sentence}: retrying in ${Math.ceil(retry.waitMs / 1_000)} s`);
        if (retry.rests === undefined) await deps.wait(retry.waitMs, signal);
        else deps.turns.rest(new URL(response?.url ?? request.url).host, retry.waitMs, retry.rests);
      }
    },
  };
}

/**
 * Limits the total time of a response. `SILENCE_MS` alone would not stop a response whose data arrives slowly but
 * steadily.
 */
function limitTime(target: URL, ms: number | null): { signal: AbortSignal; clear(): void } | undefined {
  if (ms === null) return undefined;
  const late = new AbortController();
  const sentence = `The response of ${target.href} was not complete within ${ms / 1_000} s (\`source.timeout\`)`;
  const timer = setTimeout(() => late.abort(new SourceError(sentence)), ms);
  return { signal: late.signal, clear: () => clearTimeout(timer) };
}

function isConditional({ headers }: HttpRequest): boolean {
  return headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined;
}

/** Closes the connection of a response whose body is not read. */
export function discard({ body }: Pick<HttpResponse, 'body'>): void {
  body.on('error', () => {}).destroy();
}

/** Returns the first words of an error response, for use in the error message. */
async function excerptOf({ body, headers }: HttpResponse, redactor: Redactor): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    if (headers['content-encoding'] === undefined) {
      for await (const chunk of body) {
        chunks.push(chunk as Buffer);
        bytes += (chunk as Buffer).length;
        if (bytes >= MAX_EXCERPT_BYTES) break;
      }
    }
  } catch {
    // If the connection breaks, the part of the body that has already arrived is enough.
  } finally {
    discard({ body });
  }
  const raw = Buffer.concat(chunks).subarray(0, MAX_EXCERPT_BYTES).toString();
  const text = redactor
    .mask(raw)
    // The end of a cut text may be part of a secret. A part would not be masked, so the end is removed.
    .slice(0, bytes > MAX_EXCERPT_BYTES ? -redactor.longest() : undefined)
    .replace(/<(script|style)\b.*?<\/\1>|<[^>]*>/gis, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return text === '' ? '' : `: ${text.slice(0, 200)}`;
}

const MAX_TRIES = 5;
const BASE_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
/** The longest `Retry-After` to wait for. A longer one fails the run. The job itself may be retried later. */
const MAX_REST_MS = 5 * 60_000;
/** Statuses that may be temporary. */
const PASSING = [408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524];

export type Retry =
  | { again: false; sentence: string }
  /**
   * `rests` says whose requests to the host must wait, because the host asked for a pause. If undefined, only this
   * request waits.
   */
  | { again: true; sentence: string; waitMs: number; rests?: 'team' | 'all' };

function retryOf(input: {
  request: HttpRequest;
  response: { status: number; headers: Readonly<Record<string, string>> } | undefined;
  failure: unknown;
  /** How many times the request was sent so far, at least 1. */
  tries: number;
  random: number;
  nowMs: number;
}): Retry {
  const { request, response, tries } = input;
  const what = `${request.method} ${request.url}`;
  const sentence =
    response === undefined
      ? `${what} failed: ${causeOf(input.failure)}`
      : `${what} returned ${response.status} ${STATUS_CODES[response.status] ?? ''}`.trimEnd();
  const waitMs = fullJitterMs({
    failures: tries,
    baseMs: BASE_MS,
    maxMs: MAX_BACKOFF_MS,
    random: input.random,
  });
  const times = tries > 1 ? ` (after ${tries} tries)` : '';
  if (response === undefined) {
    // The host may have processed the request before the connection broke. A GET is safe to repeat, so only GET is
    // retried.
    const again = tries < MAX_TRIES && request.method === 'GET' && mayPass(input.failure);
    return again ? { again, sentence, waitMs } : { again: false, sentence: `${sentence}${times}` };
  }
  const asked = retryAfterMs(response.headers['retry-after'], input.nowMs);
  const refused = response.status === 429 || response.status === 503;
  if (refused && asked !== null && asked > MAX_REST_MS) {
    return {
      again: false,
      sentence: `${sentence} and asks to wait ${Math.ceil(asked / 1_000)} s, which is too long for one run`,
    };
  }
  if (!PASSING.includes(response.status) || tries >= MAX_TRIES || (!refused && request.method !== 'GET')) {
    return { again: false, sentence: `${sentence}${times}${adviceFor(response.status)}` };
  }
  return refused && asked !== null
    ? // A 429 concerns the credentials of one team, and a 503 concerns the whole host.
      { again: true, sentence, waitMs: asked, rests: response.status === 429 ? 'team' : 'all' }
    : { again: true, sentence, waitMs };
}

function adviceFor(status: number): string {
  if (status === 401 || status === 403)
    return '. Check whether the source needs `source.auth` or another secret';
  if (status === 304) return ', although the request was not conditional';
  return '';
}

/**
 * Returns whether a retry may help. Refused addresses, unknown names, TLS errors and invalid HTTP are permanent
 * failures.
 */
function mayPass(failure: unknown): boolean {
  const { name, code, none } = rootOf(failure) as Error & { code?: string; none?: boolean };
  if (name === 'BlockedAddressError' || none === true) return false;
  return !/^ERR_TLS|CERT|SELF_SIGNED|UNABLE_TO_|UND_ERR_INVALID_ARG|HPE_/.test(code ?? '');
}

function causeOf(failure: unknown): string {
  const root = rootOf(failure);
  return root.message === '' ? String((root as { code?: string }).code ?? root.name) : root.message;
}

function rootOf(failure: unknown): Error {
  const error = failure as Error & { errors?: Error[] };
  return error.errors?.[0] ?? (error.cause instanceof Error ? rootOf(error.cause) : error);
}
