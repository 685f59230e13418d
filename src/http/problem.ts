/** Turns errors into answers; nothing else chooses a status. The body is exactly `{ "error": sentence }`. */
import { type ErrorCode, Problem } from '../model/error.ts';
import { VersionGoneError } from '../records/read.ts';

/** In seconds, for errors that last longer than the usual second. */
const RETRY_AFTER: Partial<Record<ErrorCode, string>> = { disk_full: '30', disk_failed: '30' };

/** An answer that is an error, ready to be sent by the framework or written to a socket. */
export interface ProblemAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Anything thrown, as an error that callers may see. Unexpected errors become `internal` and reveal nothing. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof VersionGoneError) {
    return new Problem('overloaded', {
      sentence: 'The records were pruned or erased while they were read. Read again',
      headers: { 'retry-after': '1' },
      cause: error,
    });
  }
  return new Problem('internal', { cause: error });
}

/** Whether the service failed, and not the request. */
export function isServerError(problem: Problem): boolean {
  return problem.status >= 500;
}

/** Expected states, and failures that are logged once where they are noticed: `disk.full`, `overload.refuses`. */
const LOGGED_ELSEWHERE: ReadonlySet<ErrorCode> = new Set([
  'overloaded',
  'stopping',
  'not_ready',
  'disk_full',
  'disk_failed',
]);

/** Whether a log line for each answer with this error would add nothing. */
export function isLoggedElsewhere({ code }: Problem): boolean {
  return LOGGED_ELSEWHERE.has(code);
}

export function renderProblem(problem: Problem): ProblemAnswer {
  return {
    status: problem.status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-error-code': problem.code,
      ...(problem.status === 401 ? { 'www-authenticate': 'ApiKey' } : {}),
      ...(problem.status === 503 ? { 'retry-after': RETRY_AFTER[problem.code] ?? '1' } : {}),
      ...problem.headers,
    },
    body: JSON.stringify({ error: problem.message }),
  };
}
