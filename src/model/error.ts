/** Every error that the service returns deliberately: its code, HTTP status and default sentence. */

/**
 * The HTTP status and the default sentence of each error code, followed by the status on the five operations of the
 * contract if that status differs. Most errors about a particular field or setting replace the sentence with a more
 * specific one.
 */
export const ERRORS = {
  unauthorized: [401, 'Unauthorized: send a valid API key in the x-api-key header'],
  scope_missing: [
    403,
    'This API key lacks the scope that this operation requires. Use a key with this scope',
    401,
  ],

  session_missing: [401, 'You are not signed in, or your session has expired. Sign in again'],
  key_refused: [401, 'This API key is unknown, revoked or expired. Sign in with another key'],
  link_refused: [
    401,
    'This sign-in link has already been used, or is older than 30 minutes. Run `flowhook dashboard` to get a new link',
  ],
  origin_refused: [
    403,
    'This request was sent by a page of another website. Use the pages of the dashboard, or the API with an API key',
  ],
  sign_in_limited: [
    429,
    'Too many failed sign-ins from this address. Wait for the number of seconds in the `retry-after` header',
  ],

  rate_limited: [429, 'Too many requests. Wait for the number of seconds in the `retry-after` header'],

  route_not_found: [404, 'No such path. /openapi.json lists all operations'],
  method_not_allowed: [
    405,
    'This path does not support this method. The Allow header lists the supported methods',
  ],
  workflow_not_found: [404, 'No workflow found'],
  webhook_not_found: [404, 'No webhook found'],
  job_not_found: [404, 'No job found'],
  delivery_not_found: [404, 'No delivery found'],
  replay_not_found: [404, 'No replay found'],
  retry_not_found: [404, 'No retry found'],
  quarantined_not_found: [404, 'No record with this ID in the quarantine'],
  inspector_not_found: [404, 'No inspector found. Inspectors are deleted after 24 hours: create a new one'],
  event_not_found: [404, 'No event found'],
  event_type_not_found: [404, 'No such event type. GET /v1/events/types lists them'],
  record_not_found: [404, 'No record found: no version that is stored has a record with this ID'],
  version_not_found: [
    404,
    'No such version: it was never published, or has been pruned. Read the newest version instead',
  ],
  version_pruned: [410, 'This version has been pruned. Read all records again'],
  range_not_satisfiable: [
    416,
    'The requested range starts after the end of the response. The content-range header contains the length of the response in bytes',
  ],
  team_not_found: [404, 'No team found'],
  key_not_found: [404, 'No key found'],

  key_own: [
    400,
    'This API key authenticates this request, so revoking it would lock out everyone who uses it. To revoke the key anyway, add ?self=true',
  ],
  key_lives_longer: [
    400,
    'A key cannot create a key that expires later than itself. Choose an earlier `expiresAt`, send the request with a longer-lived key, or use `flowhook keys`',
  ],
  key_of_operator: [
    400,
    'Keys with the scope `operator` cannot be created, rotated or revoked over the API. Use `flowhook keys`',
  ],

  body_invalid: [400, 'The request body must be a JSON object'],
  body_too_large: [413, 'The request body is larger than 64 KiB. Send a smaller one', 400],
  field_invalid: [400, 'A field of the request is invalid'],
  path_invalid: [400, 'The path is not valid percent-encoded UTF-8'],
  webhook_loop: [
    400,
    'A long chain of Flowhook webhooks led to this request, which looks like a loop. Unsubscribe one of these webhooks, or subscribe it to fewer events',
  ],
  request_malformed: [400, 'The request is not valid HTTP'],
  http_version_unsupported: [505, 'This HTTP version is not supported. Send HTTP/1.1', 400],
  transfer_unsupported: [
    501,
    'The transfer coding of the body is not supported. Send only `transfer-encoding: chunked`, or a `content-length`',
    400,
  ],
  headers_too_large: [431, 'The request headers are larger than 16 KiB. Send fewer or shorter headers'],

  job_already_queued: [409, 'A job is already queued for this workflow', 400],
  workflow_paused: [409, 'This workflow is paused. Resume it first', 400],
  job_ended: [409, 'This job has already ended'],
  job_not_waiting: [409, 'This job is not waiting: it is running or has ended'],
  receives_push: [
    400,
    'This workflow receives its records by push, so it has no jobs to queue. Push records instead, or run `flowhook data import`',
  ],
  not_push: [
    400,
    'This workflow fetches its records itself: queue a job. Only workflows with `type: push` as their source accept pushes',
  ],
  state_busy: [
    409,
    'A run of this workflow is in progress, and its end would overwrite the state. Try again when the run has ended, or cancel it',
  ],
  push_busy: [409, 'Another push or job of this workflow is running. Try again when it has ended'],
  push_refused: [422, 'The records are invalid, so none were published. Correct them and push again'],
  push_canceled: [409, 'The push was canceled, so no records were published'],
  quarantine_conflict: [
    409,
    'None of these records can be accepted: they are not in the quarantine any more. List the quarantine again',
  ],
  push_timeout: [
    408,
    'The push exceeded `limits.timeout` of the workflow, so no records were published. Push fewer records at a time, or raise the limit',
  ],
  idempotency_key_reused: [
    422,
    'This `idempotency-key` was already used for a different request. Use a new key for a new request, and repeat a request unchanged',
  ],
  key_made_before: [
    409,
    'A request with this `idempotency-key` has already created an API key, which is shown only once',
  ],
  content_unsupported: [415, 'The media type of the body is not supported', 400],
  webhook_exists: [
    409,
    'Another webhook already has the same workflow, URL, events and filter. Change that webhook instead',
  ],
  webhook_limit: [400, 'This workflow has reached its maximum number of webhooks. Unsubscribe one first'],

  address_unverified: [
    409,
    'The address of this webhook is not verified. Its owner must open the link in the verification mail, which POST /v1/integrations/webhooks/{webhookId}/verify sends again',
  ],
  verification_limit: [
    409,
    'Five verification mails were sent to this address, or a hundred by this team, within 24 hours. Try again tomorrow, and check the spam folder until then',
  ],
  mail_unavailable: [
    400,
    'This node cannot send mail, because FLOWHOOK_SMTP_URL is not set. Set it and FLOWHOOK_MAIL_FROM on every node, in the environment or in flowhook.yaml, and restart the service',
  ],
  feed_not_found: [404, 'No feed found'],
  feed_ended: [410, 'This feed was revoked, or has a new address. Ask its owner for the current address'],
  feed_limit: [400, 'This workflow has reached its maximum number of feeds. Revoke one first'],

  mail_failed: [
    502,
    'The SMTP server cannot be reached, or refused the mail. Try again, or ask the operator to check FLOWHOOK_SMTP_URL',
  ],
  mail_link_invalid: [
    404,
    'This link is not complete, or the notices that it belongs to do not exist any more. Open the whole link of the mail',
  ],
  mail_link_expired: [
    410,
    'This link was valid for seven days. Ask the person who set up the notices to send the verification mail again',
  ],

  inspector_limit: [400, 'The team has reached its maximum number of inspectors. Delete one first'],

  quota_reached: [
    400,
    'The team has reached a quota. Remove something first, or ask the operator for a higher quota',
  ],

  workflow_of_file: [409, 'This workflow is defined by a file on the server. Change that file instead'],
  precondition_failed: [
    412,
    'The resource has changed since you read the version that If-Match names. Read it again before you change it',
  ],

  definition_invalid: [400, 'A workflow definition is invalid'],
  overloaded: [503, 'The service is overloaded. Try again shortly'],
  database_unavailable: [503, 'The database cannot be reached. Try again shortly'],
  database_busy: [
    503,
    'Another operation holds a lock that this request needs in the database. Try again shortly',
  ],
  data_moved: [
    503,
    'The database files were moved, deleted or replaced while the service was running, so nothing can be written. The operator must restore the files or restart the service',
  ],
  disk_full: [
    503,
    'The disk of the data directory is full: reads work, writes fail. The operator must free or add space; writes then resume automatically',
  ],
  disk_failed: [
    503,
    'The service cannot write to the disk of the data directory: the disk is broken, read-only or over a quota. Reads work. The operator can find the cause in the log of the service; writes resume automatically once the cause is fixed',
  ],
  stopping: [503, 'The service is stopping. Try again shortly'],
  not_ready: [503, 'The service is not ready. Try again shortly'],
  internal: [
    500,
    'Internal error. The operator can find the cause in the log of the service, by the x-request-id of this response',
  ],
} as const satisfies Record<string, readonly [status: number, sentence: string, contractStatus?: number]>;

/** An error code, sent as `x-error-code`. The meaning of a code never changes. */
export type ErrorCode = keyof typeof ERRORS;

/**
 * The HTTP status of an error.
 *
 * @param isFrozen whether the operation is one of the five of the contract
 */
export function statusOf(code: ErrorCode, { isFrozen = false } = {}): number {
  const [status, , contractStatus]: readonly [number, string, number?] = ERRORS[code];
  return isFrozen ? (contractStatus ?? status) : status;
}

/** An error that the caller sees. `headers` are added to the response; `cause` is logged but not sent. */
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

/** Returns the value. @throws Problem with this code if the value is undefined */
export function found<T>(value: T | undefined, code: ErrorCode): T {
  if (value === undefined) throw new Problem(code);
  return value;
}

/**
 * Thrown when an attempt of a job writes although it no longer holds the job: another attempt has taken over, or the
 * job has ended. The transaction has been rolled back; the attempt must stop and discard everything.
 */
export class FencedError extends Error {
  override readonly name = 'FencedError';
}

/** Thrown at startup when another process holds something exclusive, such as the data directory. The message says what to do. */
export class InUseError extends Error {
  override readonly name = 'InUseError';
}
