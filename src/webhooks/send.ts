/** One attempt: one signed request to one webhook, and what came of it. */
import type { KeyObject } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';
import type { Attempt } from '../model/delivery.ts';
import type { Clock } from '../std/clock.ts';
import { AttemptTimeoutError, failureOf } from './failure.ts';
import { signatureHeaders } from './sign.ts';

/** What the attempts of one process share. The time to connect is bounded by the dispatcher. */
export interface Sender {
  dispatcher: Dispatcher;
  now: Clock;
  userAgent: string;
  /** From the start to the last byte of the answer that is read. */
  totalMs?: number;
}

export interface Outgoing {
  url: string;
  secret: Uint8Array;
  privateKey: KeyObject;
  eventId: string;
  eventType: string;
  /** 1 for the first. */
  attempt: number;
  /** Sent exactly as it is. */
  body: string;
  /** Cuts the attempt off; whoever aborts knows what to make of its outcome. */
  signal?: AbortSignal;
}

const TOTAL_MS = 15_000;
/** Of an answer no more than this is read; its sender must not decide how long an attempt takes. */
const MAX_READ_BYTES = 64 * 1024;
const KEPT_BYTES = 2 * 1024;

/** Sends and never throws: whatever goes wrong becomes the attempt's outcome and sentence. */
export async function sendAttempt(sender: Sender, outgoing: Outgoing): Promise<Attempt> {
  const startedAt = sender.now();
  const startMs = performance.now();
  const totalMs = sender.totalMs ?? TOTAL_MS;
  const abort = new AbortController();
  const timer = setTimeout(() => {
    abort.abort(new AttemptTimeoutError(`The answer was not complete within ${totalMs / 1000} s`));
  }, totalMs);
  let status: number | null = null;
  const ended = (came: Pick<Attempt, 'outcome' | 'error' | 'response'>): Attempt => ({
    startedAt,
    durationMs: Math.round(performance.now() - startMs),
    status,
    ...came,
  });

  try {
    const answer = await sender.dispatcher.request({
      ...target(outgoing.url),
      headers: headers(sender, outgoing, startedAt),
      body: outgoing.body,
      signal: outgoing.signal === undefined ? abort.signal : AbortSignal.any([abort.signal, outgoing.signal]),
    });
    status = answer.statusCode;
    const response = await readStart(answer.body, answer.headers['content-encoding']);
    if (status >= 200 && status < 300) return ended({ outcome: 'ok', error: null, response });
    return ended({ outcome: 'http', error: remark(status), response });
  } catch (error) {
    return ended({ ...failureOf(error), response: null });
  } finally {
    clearTimeout(timer);
  }
}

function target(url: string): Pick<Dispatcher.RequestOptions, 'origin' | 'path' | 'method'> {
  const parsed = new URL(url);
  return { origin: parsed.origin, path: parsed.pathname + parsed.search, method: 'POST' };
}

function headers(sender: Sender, outgoing: Outgoing, startedAt: number): Record<string, string> {
  const { eventId: id, body } = outgoing;
  return {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'user-agent': sender.userAgent,
    ...basicAuthorization(outgoing.url),
    ...signatureHeaders({ id, timestamp: Math.floor(startedAt / 1000), body }, outgoing),
    'webhook-event': outgoing.eventType,
    'webhook-attempt': String(outgoing.attempt),
  };
}

/** User and password of a URL never belong into the request line. */
function basicAuthorization(url: string): { authorization?: string } {
  const { username, password } = new URL(url);
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

/** The start of the answer as text. Leaving the loop early destroys the connection. */
async function readStart(
  body: AsyncIterable<Buffer>,
  encoding: string | string[] | undefined,
): Promise<string> {
  const kept: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    if (bytes < KEPT_BYTES) kept.push(chunk.subarray(0, KEPT_BYTES - bytes));
    bytes += chunk.length;
    if (bytes >= MAX_READ_BYTES) break;
  }
  // Nothing is ever unpacked here, so that a small answer cannot become a huge one.
  if (encoding !== undefined && encoding !== 'identity') return `(${bytes} bytes, ${encoding})`;
  const text = new TextDecoder().decode(Buffer.concat(kept), { stream: true });
  // PostgreSQL takes no NUL in text.
  return text.replaceAll('\0', '\ufffd');
}

function remark(status: number): string {
  if (status >= 300 && status < 400)
    return `Answered ${status}: redirects are not followed, subscribe the new URL`;
  if (status === 410) return 'Answered 410: the webhook is unsubscribed';
  return `Answered ${status}; only 2xx counts as received`;
}
