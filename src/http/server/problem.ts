/**
 * Turns errors into responses; no other code chooses an error status. The body is exactly `{ "error": sentence }`, or
 * problem details (RFC 9457) for clients that request them.
 */
import { ERRORS, type ErrorCode, Problem, statusOf } from '../../model/error.ts';
import { VersionGoneError } from '../../records/read.ts';
import { weightOf } from '../negotiate.ts';

/** In seconds, for errors that last longer than the default of 1 second. */
const RETRY_AFTER: Partial<Record<ErrorCode, string>> = { disk_full: '30', disk_failed: '30' };

/** An error response, ready to be sent as a reply or written to a socket. */
export interface ProblemAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Converts anything thrown into an error that callers may see. Unexpected errors become `internal`. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof VersionGoneError) {
    return new Problem('overloaded', {
      sentence: 'The records were pruned or erased while they were read. Read them again',
      headers: { 'retry-after': '1' },
      cause: error,
    });
  }
  return new Problem('internal', { cause: error });
}

/** Whether the error is the service's and not the client's. */
export function isServerError(problem: Problem): boolean {
  return problem.status >= 500;
}

/** Expected states, and failures that are logged once where they occur (`disk.full`, `overload.refuses`). */
const LOGGED_ELSEWHERE: ReadonlySet<ErrorCode> = new Set([
  'overloaded',
  'stopping',
  'not_ready',
  'disk_full',
  'disk_failed',
  'data_moved',
]);

/** Whether responses with this error need no log line. */
export function isLoggedElsewhere({ code }: Problem): boolean {
  return LOGGED_ELSEWHERE.has(code);
}

/**
 * @param options.isFrozen whether the request is for one of the five operations of the contract
 * @param options.detailsOf the id of the request, if it `wantsDetails`
 */
export function renderProblem(
  problem: Problem,
  { isFrozen = false, detailsOf }: { isFrozen?: boolean; detailsOf?: string | undefined } = {},
): ProblemAnswer {
  const { code } = problem;
  const status = statusOf(code, { isFrozen });
  return {
    status,
    headers: {
      'content-type':
        detailsOf === undefined ? 'application/json; charset=utf-8' : `${DETAILS}; charset=utf-8`,
      'x-error-code': code,
      ...(status === 401 ? { 'www-authenticate': 'ApiKey' } : {}),
      ...(status === 503 ? { 'retry-after': RETRY_AFTER[code] ?? '1' } : {}),
      ...problem.headers,
    },
    body: JSON.stringify(
      detailsOf === undefined
        ? { error: problem.message }
        : {
            type: `urn:flowhook:error:${code}`,
            title: ERRORS[code][1],
            status,
            detail: problem.message,
            code,
            requestId: detailsOf,
            ...(problem.headers['x-job-id'] === undefined ? {} : { jobId: problem.headers['x-job-id'] }),
          },
    ),
  };
}

const DETAILS = 'application/problem+json';

/** Whether `Accept` prefers problem details to other JSON. */
export function wantsDetails(accept: string | undefined): boolean {
  return (
    accept?.includes(DETAILS) === true && weightOf(accept, DETAILS) > weightOf(accept, 'application/json')
  );
}
