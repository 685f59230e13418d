/** Errors of calls: one class for each way in which callers may react. */

/** What is known about a failed call. */
export interface Refusal {
  /** The error sentence of the response, which says what to do next. */
  message: string;
  /** The HTTP status; 0 if there was no response. */
  status: number;
  /**
   * `x-error-code`, such as `workflow_not_found`. Without a response: `unreachable`, `timed_out` or `broken_off`;
   * `not_json` if the response did not come from Flowhook.
   */
  code: string;
  /** `x-request-id`: identifies the call in the log of the service. */
  requestId?: string | null;
  /** `x-job-id`: the unfinished job that conflicts, or the job that failed. */
  jobId?: string | null;
  /** `retry-after`, in milliseconds. */
  retryAfterMs?: number | null;
  cause?: unknown;
}

/** Base class of all errors of calls. The reason of an aborted signal is thrown unchanged. */
export class FlowhookError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly jobId: string | null;
  readonly retryAfterMs: number | null;

  constructor({ message, status, code, requestId, jobId, retryAfterMs, cause }: Refusal) {
    super(message, cause === undefined ? {} : { cause });
    // Minifiers rename classes: programs should look at `code`.
    this.name = new.target.name;
    this.status = status;
    this.code = code;
    this.requestId = requestId ?? null;
    this.jobId = jobId ?? null;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

/** 401: the key is missing, wrong, expired or revoked. */
export class Unauthorized extends FlowhookError {}
/** 403, and 401 on the five operations of the contract: the key lacks the scope. */
export class Forbidden extends Unauthorized {}
/** 404, 410: the team has no such resource, or it is no longer stored. */
export class NotFound extends FlowhookError {}
/** 409, 412, and 400 for a conflicting state, such as a queued job or a reached limit. */
export class Conflict extends FlowhookError {}
/** 429: too many calls. Retry after `retryAfterMs`. */
export class RateLimited extends FlowhookError {}
/** 502, 503, 504, no connection, or a broken connection: the call may succeed later. */
export class Unavailable extends FlowhookError {}
/** 408, or no response within `timeoutMs`. */
export class TimedOut extends FlowhookError {}

/** Codes of conflicting states that are returned as 400, because the contract has no 409. */
const STATE_CODES = [
  'job_already_queued',
  'workflow_paused',
  'job_ended',
  'job_not_waiting',
  'webhook_limit',
  'inspector_limit',
  'feed_limit',
];

/** The error for a response that is neither 2xx nor 304. */
export async function errorOf(response: Response): Promise<FlowhookError> {
  const { status, headers } = response;
  const text = await response.text().catch(() => '');
  const refusal: Refusal = {
    // Browsers hide the status of a redirect: it is 0.
    message: sentenceIn(text) ?? (status < 400 ? REDIRECTED : `The service returned ${status}`),
    status,
    code: headers.get('x-error-code') ?? `http_${status}`,
    requestId: headers.get('x-request-id'),
    jobId: headers.get('x-job-id'),
    retryAfterMs: retryAfterMs(headers.get('retry-after'), Date.now()),
  };
  return new (classOf(refusal))(refusal);
}

const REDIRECTED =
  'The service redirects to another address. Use that address as `url`: the key is not sent to others';

function classOf({ status, code }: Refusal): new (refusal: Refusal) => FlowhookError {
  if (status === 403 || code === 'scope_missing') return Forbidden;
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

/** Reads seconds or a date. */
function retryAfterMs(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
