/** What a call may throw: one class for each thing that callers do differently. */

/** What is known of a refusal, or of an answer that never came. */
export interface Refusal {
  /** The sentence of the answer, which says what to do next. */
  message: string;
  /** The HTTP status; 0 when there was no answer. */
  status: number;
  /** `x-error-code`, such as `workflow_not_found`; without an answer `unreachable`, `timed_out` or `broken_off`. */
  code: string;
  /** `x-request-id`: what the log of the service knows the call by. */
  requestId?: string | null;
  /** `x-job-id`: the job in the way, or the one that failed. */
  jobId?: string | null;
  /** How long the service asks to be left alone, in milliseconds. */
  retryAfterMs?: number | null;
  cause?: unknown;
}

/** Every error of the service. What an abort signal gives as its reason is thrown as it is, and is none of these. */
export class FlowhookError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly jobId: string | null;
  readonly retryAfterMs: number | null;

  constructor({ message, status, code, requestId, jobId, retryAfterMs, cause }: Refusal) {
    super(message, cause === undefined ? {} : { cause });
    // The class that was called: minifiers rename classes, so the code is what a program should look at.
    this.name = new.target.name;
    this.status = status;
    this.code = code;
    this.requestId = requestId ?? null;
    this.jobId = jobId ?? null;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

/** 401: the key is missing, wrong, expired or revoked, or lacks the scope. */
export class Unauthorized extends FlowhookError {}
/** 404, 410: there is none of this name in the key's team, or it is no longer kept. */
export class NotFound extends FlowhookError {}
/** 409, 412, and 400 for a state that is in the way: a job is queued already, has ended, the workflow is paused. */
export class Conflict extends FlowhookError {}
/** 429: more calls than the operator allows. `retryAfterMs` says when to come back. */
export class RateLimited extends FlowhookError {}
/** 502, 503, 504, no connection, or one that broke off: the same call may work later. */
export class Unavailable extends FlowhookError {}
/** 408, or no answer within `timeoutMs`. */
export class TimedOut extends FlowhookError {}

/** Answered with 400, because the contract knows no 409, but a state and no mistake of the caller. */
const STATE_CODES = [
  'job_already_queued',
  'workflow_paused',
  'job_ended',
  'job_not_waiting',
  'webhook_limit',
  'inspector_limit',
];

/** The error of an answer that is none of success. */
export async function errorOf(response: Response): Promise<FlowhookError> {
  const { status, headers } = response;
  const text = await response.text().catch(() => '');
  const refusal: Refusal = {
    message:
      sentenceIn(text) ?? (status === 0 || status < 400 ? REDIRECTED : `The service answered ${status}`),
    status,
    code: headers.get('x-error-code') ?? `http_${status}`,
    requestId: headers.get('x-request-id'),
    jobId: headers.get('x-job-id'),
    retryAfterMs: retryAfterMs(headers.get('retry-after'), Date.now()),
  };
  return new (classOf(refusal))(refusal);
}

const REDIRECTED =
  'The service redirects to another address. Give that address as `url`: the key is not sent to others';

function classOf({ status, code }: Refusal): new (refusal: Refusal) => FlowhookError {
  if (status === 401) return Unauthorized;
  if (status === 404 || status === 410) return NotFound;
  if (status === 409 || status === 412 || STATE_CODES.includes(code)) return Conflict;
  if (status === 429) return RateLimited;
  if (status === 408) return TimedOut;
  return status >= 502 && status <= 504 ? Unavailable : FlowhookError;
}

function sentenceIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text);
    return typeof error === 'string' ? error : undefined;
  } catch {
    return undefined;
  }
}

/** Seconds, or a date. */
function retryAfterMs(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
