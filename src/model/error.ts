/** Every error that is raised on purpose: its code, its HTTP status and its sentence. */

/**
 * By code: the status; the sentence unless the place where it is raised has a better one; and the status on the five
 * operations of the contract, where theirs is another.
 */
export const ERRORS = {
  unauthorized: [401, 'Unauthorized: send a valid API key in the x-api-key header'],
  scope_missing: [403, 'This API key does not have the scope that this operation needs', 401],

  session_missing: [401, 'You are not signed in, or your session has ended. Sign in again'],
  key_refused: [401, 'This key is not known here, or it is revoked or expired'],
  link_refused: [
    401,
    'This link was used already, or it is older than 30 minutes. `flowhook dashboard` prints a new one',
  ],
  origin_refused: [403, 'This request comes from a page that is not part of this service'],
  sign_in_limited: [429, 'Too many attempts to sign in failed from this address. Wait a little'],

  rate_limited: [429, 'Too many requests. Wait as long as `retry-after` says'],

  route_not_found: [404, 'No such path. The operations are listed in /openapi.json'],
  method_not_allowed: [405, 'This path does not take that method. The Allow header lists those it takes'],
  workflow_not_found: [404, 'No workflow found'],
  webhook_not_found: [404, 'No webhook found'],
  job_not_found: [404, 'No job found'],
  delivery_not_found: [404, 'No delivery found'],
  replay_not_found: [404, 'No replay found'],
  inspector_not_found: [404, 'No inspector found: it was removed, or its day is over'],
  event_not_found: [404, 'No event found'],
  event_type_not_found: [404, 'No such type of event. GET /v1/events/types lists them'],
  version_not_found: [
    404,
    'No such version: it was never published, or it is no longer kept. Read the newest',
  ],
  version_pruned: [410, 'That version was pruned: read everything again'],
  range_not_satisfiable: [
    416,
    'The range lies outside of the answer. The content-range header tells its length',
  ],
  team_not_found: [404, 'No team found'],
  key_not_found: [404, 'No key found'],

  key_own: [
    400,
    'This is the key that you call with: whoever holds it would be locked out. To revoke it all the same, add ?self=true',
  ],
  key_lives_longer: [
    400,
    'The key that you call with expires sooner than this one would: call with one that lives as long, or use `flowhook keys`',
  ],
  key_of_operator: [
    400,
    'This key has the scope `operator`: such keys are made and revoked with `flowhook keys`, not over the API',
  ],

  body_invalid: [400, 'The request body must be a JSON object'],
  body_too_large: [413, 'The request body is larger than 64 KiB', 400],
  field_invalid: [400, 'A field of the request is not valid'],
  path_invalid: [400, 'The path is not valid percent-encoded UTF-8'],
  webhook_loop: [
    400,
    'Webhooks of Flowhook led to this request one after the other, too many in a row: this looks like a loop. Unsubscribe one of them, or narrow its events',
  ],
  request_malformed: [400, 'The request is not valid HTTP'],
  http_version_unsupported: [505, 'This version of HTTP is not spoken here: send HTTP/1.1', 400],
  transfer_unsupported: [
    501,
    'The body comes in a transfer coding that is not read here: send `transfer-encoding: chunked` alone, or a `content-length`',
    400,
  ],
  headers_too_large: [431, 'The request headers are larger than 16 KiB'],

  job_already_queued: [409, 'A job is already queued for this workflow', 400],
  workflow_paused: [409, 'This workflow is paused', 400],
  job_ended: [409, 'This job has already ended'],
  job_not_waiting: [409, 'This job does not wait: it runs, or it has ended'],
  receives_push: [400, 'This workflow receives its records by push'],
  not_push: [
    400,
    'This workflow fetches its records itself: queue a job. Only one whose source is `type: push` takes a push',
  ],
  push_busy: [409, 'Another push or job of this workflow is under way. Try again when it has ended'],
  push_refused: [422, 'The records were refused. The published ones stay as they are'],
  push_canceled: [409, 'The push was canceled. The published records stay as they are'],
  push_timeout: [408, 'The push took too long. The published records stay as they are'],
  idempotency_key_reused: [
    422,
    'This `idempotency-key` came with another request before. Send a new key with a new request, and the same request with the same key',
  ],
  key_made_before: [409, 'This `idempotency-key` has made an API key before, which was shown that once'],
  content_unsupported: [415, 'The body comes in a form that is not read here', 400],
  webhook_limit: [400, 'This workflow has as many webhooks as it may have. Unsubscribe one first'],

  inspector_limit: [400, 'The team has as many inspectors as it may have. Remove one first'],

  quota_reached: [400, 'The team has as much as it may have'],

  workflow_of_file: [409, 'This workflow is defined by a file of the operator: change it there'],
  precondition_failed: [
    412,
    'It has been changed since the answer that If-Match names: read it again, and decide then',
  ],

  definition_invalid: [400, 'A workflow definition is not valid'],
  overloaded: [503, 'The service is overloaded. Try again shortly'],
  database_unavailable: [503, 'The database cannot be reached. Try again shortly'],
  database_busy: [503, 'Something else holds what this needs in the database. Try again shortly'],
  data_moved: [
    503,
    'The files of the database were moved, deleted or replaced while the service ran: nothing is written. The operator has to put them back, or to restart the service',
  ],
  disk_full: [
    503,
    'The disk of the data directory is full: nothing can be written, and reads go on. The operator has to free space or to grow it; writing then goes on by itself',
  ],
  disk_failed: [
    503,
    'The disk of the data directory refuses to be written to: it fails, is read-only, or a quota is used up. Reads go on. The log of the service says more; writing goes on by itself when that is mended',
  ],
  stopping: [503, 'The service is stopping. Try again shortly'],
  not_ready: [503, 'The service is not ready. Try again shortly'],
  internal: [500, 'Something went wrong here. The log of the service says more under this x-request-id'],
} as const satisfies Record<string, readonly [status: number, sentence: string, ofContract?: number]>;

/** A code of the table. Codes are sent as `x-error-code` and never change their meaning. */
export type ErrorCode = keyof typeof ERRORS;

/** The status of an error. @param isFrozen whether one of the five operations of the contract answers with it */
export function statusOf(code: ErrorCode, { isFrozen = false } = {}): number {
  const [status, , ofContract]: readonly [number, string, number?] = ERRORS[code];
  return isFrozen ? (ofContract ?? status) : status;
}

/** An error that a caller may see. `headers` are added to the answer; `cause` goes to the log only. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ErrorCode;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    options: { sentence?: string; headers?: Readonly<Record<string, string>>; cause?: unknown } = {},
  ) {
    super(options.sentence ?? ERRORS[code][1], options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.status = ERRORS[code][0];
    this.headers = options.headers ?? {};
  }
}

/** @throws Problem with the code, when there is no value */
export function found<T>(value: T | undefined, code: ErrorCode): T {
  if (value === undefined) throw new Problem(code);
  return value;
}

/**
 * Raised by a write of a run whose (job, attempt) no longer holds the job: another attempt has taken over, or
 * the job was ended. The whole transaction has been rolled back; the run must stop and drop everything.
 */
export class FencedError extends Error {
  override readonly name = 'FencedError';
}

/** Raised at a start when another process has what must belong to one: its message says what to do. */
export class InUseError extends Error {
  override readonly name = 'InUseError';
}
