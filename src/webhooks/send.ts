/** One attempt: one signed request to one webhook, and what came of it. */
import type { KeyObject } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';
import type { Attempt, AttemptDetails } from '../model/delivery.ts';
import { connectionOf, type RequestTrace, traceRequest } from '../net/connection.ts';
import { retryAfterMs } from '../net/retry-after.ts';
import type { Clock } from '../std/clock.ts';
import { readStart } from './answer.ts';
import { hideEchoes } from './echo.ts';
import { CutOffError, endedUnanswered, failureOf } from './failure.ts';
import { hiddenValues, loggedRequest, loggedResponse } from './headers.ts';
import { signatureHeaders } from './sign.ts';

/** What the attempts of one process share. The time to connect is bounded by the dispatcher. */
export interface Sender {
  dispatcher: Dispatcher;
  now: Clock;
  userAgent: string;
}

export interface Outgoing {
  url: string;
  /** Each makes one `v1` signature, newest first. */
  secrets: readonly Uint8Array[];
  privateKey: KeyObject;
  /** The webhook's own, as `headersMistake` lets them through. */
  headers: Record<string, string>;
  /** From the start to the last byte of the answer that is read. */
  timeoutMs: number;
  /** How long it has waited in its lane; for the log. */
  queuedMs: number;
  eventId: string;
  eventType: string;
  /** 1 for the first. */
  attempt: number;
  /** Sent exactly as it is. Not empty. */
  body: string;
  /** Cuts the attempt off; whoever aborts knows what to make of its outcome. */
  signal?: AbortSignal;
}

export interface Sent {
  attempt: Attempt;
  /** How long the endpoint asks to be left alone (429 and 503 with `Retry-After`, at most 24 hours), or null. */
  retryAfterMs: number | null;
}

/** Answers 1xx before the real one; more are a flood that would only cost time. */
const MAX_INTERIM = 32;
const MAX_LOCATION = 200;

/** What is known of an attempt at any moment. */
interface Progress {
  trace: RequestTrace | undefined;
  status: number | null;
  headers: IncomingHttpHeaders;
  firstByteMs: number | null;
}

/**
 * Sends. Whatever goes wrong on the way becomes the attempt's outcome and sentence.
 *
 * @throws TypeError when the URL cannot be read; subscribe takes none such
 */
export async function sendAttempt(sender: Sender, outgoing: Outgoing): Promise<Sent> {
  const url = new URL(outgoing.url);
  const startedAt = sender.now();
  const startMs = performance.now();
  const headers = await headersOf(sender, { outgoing, url, startedAt });
  const hide = hideEchoes(hiddenValues(headers, outgoing.headers));
  const progress: Progress = { trace: undefined, status: null, headers: {}, firstByteMs: null };
  const cutOff = new AbortController();
  const timer = setTimeout(
    () => cutOff.abort(new CutOffError('timeout', lateness(progress, outgoing.timeoutMs))),
    outgoing.timeoutMs,
  );
  // Not `AbortSignal.any`: Node keeps what that makes for as long as the outer signal lives, which is the process.
  const stop = () => cutOff.abort(outgoing.signal?.reason);
  outgoing.signal?.addEventListener('abort', stop, { once: true });
  if (outgoing.signal?.aborted) stop();
  let came: Pick<Attempt, 'outcome' | 'error' | 'response'>;
  let failed: unknown;
  try {
    const response = await exchange(sender.dispatcher, { outgoing, url, headers, cutOff, progress });
    const error = remark(progress, hide);
    came = { outcome: error === null ? 'ok' : 'http', error, response };
  } catch (error) {
    failed = error;
    came = { ...failureOf(error), response: null };
  } finally {
    clearTimeout(timer);
    outgoing.signal?.removeEventListener('abort', stop);
  }
  const { status } = progress;
  const asksToWait = status === 429 || status === 503;
  return {
    attempt: {
      startedAt,
      durationMs: Math.round(performance.now() - startMs),
      status,
      outcome: came.outcome,
      error: came.error === null ? null : hide(came.error),
      response: came.response === null ? null : hide(came.response),
      details: {
        url: url.origin + target(url),
        requestHeaders: loggedRequest(
          { host: url.host, 'content-length': String(Buffer.byteLength(outgoing.body)), ...headers },
          outgoing.headers,
        ),
        responseHeaders: loggedResponse(progress.headers, hide),
        ...whereAndWhen(progress, { startMs, queuedMs: outgoing.queuedMs, failed }),
      },
    },
    retryAfterMs: asksToWait ? retryAfterMs(progress.headers['retry-after'], sender.now()) : null,
  };
}

interface Exchange {
  outgoing: Outgoing;
  url: URL;
  headers: Record<string, string>;
  cutOff: AbortController;
  progress: Progress;
}

/**
 * Sends and reads the start of the answer. An endpoint may close a connection that was kept open just as a request
 * is written to it: that one was never read, so it goes once more instead of becoming a failed attempt.
 */
async function exchange(dispatcher: Dispatcher, input: Exchange): Promise<string> {
  try {
    return await request(dispatcher, input);
  } catch (error) {
    const { trace, status } = input.progress;
    if (trace?.reused !== true || status !== null || !endedUnanswered(error)) throw error;
    return request(dispatcher, input);
  }
}

async function request(dispatcher: Dispatcher, input: Exchange): Promise<string> {
  const { outgoing, url, headers, cutOff, progress } = input;
  const body = Buffer.from(outgoing.body, 'utf8');
  progress.trace = traceRequest(body);
  let interim = 0;
  const { signal } = cutOff;
  const answering = dispatcher.request({
    origin: url.origin,
    path: target(url),
    method: 'POST',
    headers,
    body,
    signal,
    onInfo() {
      interim += 1;
      if (interim <= MAX_INTERIM) return;
      cutOff.abort(
        new CutOffError(
          'protocol',
          `More than ${MAX_INTERIM} interim answers (1xx) came instead of an answer`,
        ),
      );
    },
  });
  // Undici hears of an abort only once the connection is made; then it sends nothing.
  const answer = await Promise.race([answering, aborted(signal)]);
  progress.firstByteMs = performance.now();
  progress.status = answer.statusCode;
  progress.headers = answer.headers;
  return readStart(answer.body, answer.headers['content-encoding']);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function target(url: URL): string {
  return url.pathname + url.search;
}

/** The webhook's own come first, so that none of them can take the place of what makes the delivery. */
async function headersOf(
  sender: Sender,
  input: { outgoing: Outgoing; url: URL; startedAt: number },
): Promise<Record<string, string>> {
  const { outgoing, startedAt } = input;
  const { eventId: id, body } = outgoing;
  const own = Object.entries(outgoing.headers).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    'accept-encoding': 'identity',
    'user-agent': sender.userAgent,
    ...basicAuthorization(input.url),
    ...Object.fromEntries(own),
    'content-type': 'application/json',
    ...(await signatureHeaders({ id, timestamp: Math.floor(startedAt / 1000), body }, outgoing)),
    'webhook-event': outgoing.eventType,
    'webhook-attempt': String(outgoing.attempt),
  };
}

/** User and password of a URL never belong into the request line. */
function basicAuthorization({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const plain = `${decoded(username)}:${decoded(password)}`;
  return { authorization: `Basic ${Buffer.from(plain, 'utf8').toString('base64')}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone percent sign is allowed in a URL and stands for itself.
    return text;
  }
}

function lateness({ trace, status }: Progress, timeoutMs: number): string {
  const within = `within ${timeoutMs / 1_000} s`;
  if (status !== null) return `Answered ${status}, but the answer was not complete ${within}`;
  if (trace?.connection) return `The request was sent, but no answer with complete headers came ${within}`;
  return `No connection could be made ${within}`;
}

function remark({ status, headers }: Progress, hide: (text: string) => string): string | null {
  if (status === null || (status >= 200 && status < 300)) return null;
  if (status >= 300 && status < 400) {
    const to = headers.location === undefined ? '' : ` to ${hide(headers.location).slice(0, MAX_LOCATION)}`;
    return `Answered ${status}${to}: redirects are not followed, subscribe the new URL`;
  }
  if (status === 410) return 'Answered 410: the webhook is unsubscribed';
  return `Answered ${status}; only 2xx counts as received`;
}

function whereAndWhen(
  { trace, firstByteMs }: Progress,
  input: { startMs: number; queuedMs: number; failed: unknown },
): Pick<AttemptDetails, 'remoteAddress' | 'timing'> {
  const connection = trace?.connection ?? connectionOf(input.failed);
  const since = (ms: number | null | undefined): number | null =>
    ms === null || ms === undefined ? null : Math.max(0, Math.round(ms - input.startMs));
  const made = trace?.reused === true ? undefined : connection;
  return {
    remoteAddress: connection?.remoteAddress ?? null,
    timing: {
      queuedMs: Math.round(input.queuedMs),
      dnsMs: since(made?.lookedUpMs),
      connectMs: since(made?.connectedMs),
      tlsMs: since(made?.securedMs),
      firstByteMs: since(firstByteMs),
    },
  };
}
