/** Decides whether and when a failed request is retried, and describes the failure. */
import { retryAfterMs } from '../../net/response-headers.ts';
import { fullJitterMs } from '../../std/backoff.ts';
import { STATUS_CODES } from '../../std/http-names.ts';
import type { HttpRequest } from './request.ts';

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

export function retryOf(input: {
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
