/** Sends requests politely: in turn with other jobs, with redirects, cookies and patience. */
import type { Readable } from 'node:stream';
import { type Dispatcher, request as send } from 'undici';
import type { CookieJar } from '../../../net/cookies.ts';
import type { HostTurns, Pace } from '../../../net/host-turns.ts';
import type { Hidden } from './hidden.ts';
import { isAtOrigin } from './origins.ts';
import { PLAIN_HEADERS } from './plain-headers.ts';
import type { HttpRequest } from './request.ts';
import { type Retry, retryOf } from './retry.ts';
import { SourceError } from './source-error.ts';

const MAX_REDIRECTS = 10;
const ENCODINGS = 'gzip, br, zstd, deflate';
/** Silence: before the headers, and between two parts of the body. */
const SILENCE_MS = 60_000;
/** What a definition calls itself is for the hosts that it names. */
const OWN_WORDS = ['user-agent', 'accept-language'];
/** Headers that have one value; the first counts where there are several. */
const ONCE = ['retry-after', 'location', 'content-type', 'etag', 'last-modified'];
const MAX_EXCERPT_BYTES = 2_048;
export interface Answer {
  status: number;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** Where it came from in the end. */
  url: string;
  /** To be read or destroyed. */
  body: Readable;
}

export interface ClientDeps {
  dispatcher: Dispatcher;
  turns: HostTurns;
  pace: Pace;
  /** For one answer to its last byte; null: as long as something comes. */
  answerMs: number | null;
  /** Undefined where cookies are not kept. */
  cookies: CookieJar | undefined;
  /** Says who asks. */
  agent: string;
  /** Origins that may be sent the definition's own headers, cookies and body. */
  trusted: ReadonlySet<string>;
  hidden: Hidden;
  signal: AbortSignal;
  log(level: 'debug' | 'info' | 'warn', text: string): void;
  /** Between two tries; rejects with the signal's reason. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** In [0, 1). */
  random(): number;
  now(): number;
}

export interface Client {
  /**
   * The answer to a request: 2xx, 304 where it was asked whether something has changed, or one of `accepted`. Others are tried again where that may help.
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
        if (trusted || (PLAIN_HEADERS.includes(name) && !OWN_WORDS.includes(name))) sent[name] = value;
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
          const words = answer === undefined ? '' : await excerptOf(answer, deps.hidden);
          throw new SourceError(`${retry.sentence}${words}`, {
            cause: failure,
            ...(answer === undefined ? {} : { status: answer.status }),
          });
        }
        deps.log('warn', `${retry.sentence}: asked again in ${Math.ceil(retry.waitMs / 1_000)} s`);
        if (retry.restHost) deps.turns.rest(new URL(answer?.url ?? request.url).host, retry.waitMs);
        else await deps.wait(retry.waitMs, signal);
      }
    },
  };
}

/** Ends an answer that drips: each byte of it comes in time, and all of it never. */
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

/** Lets go of an answer that is not read. */
export function discard({ body }: Pick<Answer, 'body'>): void {
  body.on('error', () => {}).destroy();
}

/** The first words of an answer that is an error. */
async function excerptOf({ body, headers }: Answer, hidden: Hidden): Promise<string> {
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
    // What came before it broke off will do.
  } finally {
    discard({ body });
  }
  const raw = Buffer.concat(chunks).subarray(0, MAX_EXCERPT_BYTES).toString();
  const text = hidden
    .mask(raw)
    // What is cut off in the middle of a secret is not known as one.
    .slice(0, bytes > MAX_EXCERPT_BYTES ? -hidden.longest() : undefined)
    .replace(/<(script|style)\b.*?<\/\1>|<[^>]*>/gis, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return text === '' ? '' : `: ${text.slice(0, 200)}`;
}
