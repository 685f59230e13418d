/** Sends requests: within the per-host limits of all jobs, with redirects, cookies, time limits and retries. */
import type { Readable } from 'node:stream';
import { type Dispatcher, request as send } from 'undici';
import type { CookieJar } from '../../net/cookies.ts';
import type { HostTurns, Pace } from '../../net/host-turns.ts';
import { retryAfterMs } from '../../net/response-headers.ts';
import { fullJitterMs } from '../../std/backoff.ts';
import { STATUS_CODES } from '../../std/http-names.ts';
import type { Redactor } from '../secrets.ts';
import { isAtOrigin } from './outbound.ts';
import { type HttpRequest, PLAIN_HEADERS, SourceError } from './request.ts';

const MAX_REDIRECTS = 10;
const ENCODINGS = 'gzip, br, zstd, deflate';
/** Limit of silence before the headers, and between two chunks of the body. */
const SILENCE_MS = 60_000;
/** Of the plain headers, those that only trusted origins get. */
const TRUSTED_ONLY = ['user-agent', 'accept-language'];
/** Headers with a single value; of several, the first counts. */
const ONCE = ['retry-after', 'location', 'content-type', 'etag', 'last-modified'];
const MAX_EXCERPT_BYTES = 2_048;

export interface Answer {
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
  /** Time limit for a response up to its last byte; null: as long as bytes keep coming. */
  answerMs: number | null;
  /** Undefined when cookies are not kept. */
  cookies: CookieJar | undefined;
  /** The user agent, unless the definition sets another. */
  agent: string;
  /** Origins that may be sent the definition's own headers, cookies and body. */
  trusted: ReadonlySet<string>;
  redactor: Redactor;
  signal: AbortSignal;
  log(level: 'debug' | 'info' | 'warn', text: string): void;
  /** Waits between two attempts; rejects with the signal's reason. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** In [0, 1). */
  random(): number;
  /** Epoch milliseconds. */
  now(): number;
}

export interface Client {
  /**
   * The response to a request: 2xx, 304 to a conditional request, or one of the statuses `accepted`. Any other is retried
   * where that may help.
   *
   * @throws SourceError
   */
  send(request: HttpRequest, options?: { accepted?: readonly number[] }): Promise<Answer>;
}

export function createClient(deps: ClientDeps): Client {
  const { signal } = deps;

  async function once(request: HttpRequest): Promise<Answer> {
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
          `${target.origin} is to be sent the body of a request that is meant for another host: that is refused`,
        );
      }
      const cookie = await deps.cookies?.header(url);
      if (cookie) sent.cookie = sent.cookie === undefined ? cookie : `${sent.cookie}; ${cookie}`;
      const answer = await inTurn(target, { method, headers: sent, body });
      await deps.cookies?.store(answer.setCookies, url);
      const location = answer.headers.location;
      if (![301, 302, 303, 307, 308].includes(answer.status) || location === undefined)
        return { ...answer, url };
      discard(answer);
      if (hops === MAX_REDIRECTS) {
        throw new SourceError(
          `${request.url} redirects more than ${MAX_REDIRECTS} times, at last to ${location}`,
        );
      }
      const next = URL.parse(location, url);
      if (next === null || !/^https?:$/.test(next.protocol)) {
        throw new SourceError(`${url} redirects to ${JSON.stringify(location)}, which is no HTTP address`);
      }
      if (answer.status < 307 && method !== 'GET') {
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
      const { statusCode, headers, body } = await send(target, {
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
        let answer: Answer | undefined;
        let failure: unknown;
        try {
          const startedAt = deps.now();
          answer = await once(request);
          deps.log(
            'debug',
            `${request.method} ${request.url} ${answer.status}, ${deps.now() - startedAt} ms`,
          );
          if (
            (answer.status >= 200 && answer.status < 300) ||
            (answer.status === 304 && isConditional(request)) ||
            accepted.includes(answer.status)
          ) {
            return answer;
          }
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof SourceError) throw error;
          failure = error;
        }
        const retry: Retry = retryOf({
          request,
          answer,
          failure,
          tries,
          random: deps.random(),
          nowMs: deps.now(),
        });
        if (answer !== undefined && retry.again) discard(answer);
        if (!retry.again) {
          const words = answer === undefined ? '' : await excerptOf(answer, deps.redactor);
          throw new SourceError(`${retry.sentence}${words}`, {
            cause: failure,
            ...(answer === undefined ? {} : { status: answer.status }),
          });
        }
        deps.log('warn', `${retry.sentence}: asked again in ${Math.ceil(retry.waitMs / 1_000)} s`);
        if (retry.rests === undefined) await deps.wait(retry.waitMs, signal);
        else deps.turns.rest(new URL(answer?.url ?? request.url).host, retry.waitMs, retry.rests);
      }
    },
  };
}

/** Limits the whole time of a response: one that drips never runs into the limit of silence. */
function limitTime(target: URL, ms: number | null): { signal: AbortSignal; clear(): void } | undefined {
  if (ms === null) return undefined;
  const late = new AbortController();
  const sentence = `${target.href} had not answered to the last byte within ${ms / 1_000} s, its \`source.timeout\``;
  const timer = setTimeout(() => late.abort(new SourceError(sentence)), ms);
  return { signal: late.signal, clear: () => clearTimeout(timer) };
}

function isConditional({ headers }: HttpRequest): boolean {
  return headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined;
}

/** Releases the connection of a response that is not read. */
export function discard({ body }: Pick<Answer, 'body'>): void {
  body.on('error', () => {}).destroy();
}

/** The first words of an error response, for the error message. */
async function excerptOf({ body, headers }: Answer, redactor: Redactor): Promise<string> {
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
    // What came before the connection broke is enough.
  } finally {
    discard({ body });
  }
  const raw = Buffer.concat(chunks).subarray(0, MAX_EXCERPT_BYTES).toString();
  const text = redactor
    .mask(raw)
    // A secret that the cut splits would not be masked.
    .slice(0, bytes > MAX_EXCERPT_BYTES ? -redactor.longest() : undefined)
    .replace(/<(script|style)\b.*?<\/\1>|<[^>]*>/gis, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return text === '' ? '' : `: ${text.slice(0, 200)}`;
}

const MAX_TRIES = 5;
const BASE_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
/** A longer Retry-After fails the run; the job itself may be retried later. */
const MAX_REST_MS = 5 * 60_000;
/** Statuses that may be temporary. */
const PASSING = [408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524];

export type Retry =
  | { again: false; sentence: string }
  /** `rests`: whose requests to the host wait, because it asked for that; undefined: only this one does. */
  | { again: true; sentence: string; waitMs: number; rests?: 'team' | 'all' };

function retryOf(input: {
  request: HttpRequest;
  answer: { status: number; headers: Readonly<Record<string, string>> } | undefined;
  failure: unknown;
  /** How often it was sent, from 1. */
  tries: number;
  random: number;
  nowMs: number;
}): Retry {
  const { request, answer, tries } = input;
  const what = `${request.method} ${request.url}`;
  const sentence =
    answer === undefined
      ? `${what} failed: ${causeOf(input.failure)}`
      : `${what} answered ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`.trimEnd();
  const waitMs = fullJitterMs({
    failures: tries,
    baseMs: BASE_MS,
    maxMs: MAX_BACKOFF_MS,
    random: input.random,
  });
  const times = tries > 1 ? ` (after ${tries} tries)` : '';
  if (answer === undefined) {
    // The host may have processed the request before the connection broke, so only GET is repeated.
    const again = tries < MAX_TRIES && request.method === 'GET' && mayPass(input.failure);
    return again ? { again, sentence, waitMs } : { again: false, sentence: `${sentence}${times}` };
  }
  const asked = retryAfterMs(answer.headers['retry-after'], input.nowMs);
  const refused = answer.status === 429 || answer.status === 503;
  if (refused && asked !== null && asked > MAX_REST_MS) {
    return {
      again: false,
      sentence: `${sentence} and asks to wait ${Math.ceil(asked / 1_000)} s, which is too long for one run`,
    };
  }
  if (!PASSING.includes(answer.status) || tries >= MAX_TRIES || (!refused && request.method !== 'GET')) {
    return { again: false, sentence: `${sentence}${times}${adviceFor(answer.status)}` };
  }
  return refused && asked !== null
    ? // 429 is about the credentials of one team, 503 about the host.
      { again: true, sentence, waitMs: asked, rests: answer.status === 429 ? 'team' : 'all' }
    : { again: true, sentence, waitMs };
}

function adviceFor(status: number): string {
  if (status === 401 || status === 403) return '. Does it need `source.auth`, or another secret?';
  if (status === 304) return ', and was not asked whether anything has changed';
  return '';
}

/** A refusal by our address guard and a name that does not exist are permanent, and so are errors of TLS and HTTP. */
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
