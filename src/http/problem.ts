/** Renders errors: the only place where one becomes an answer. The body is exactly `{ "error": sentence }`. */
import { type ErrorCode, Problem } from '../model/error.ts';
import { VersionGoneError } from '../records/read.ts';

/** Seconds, where a second would be too soon. */
const RETRY_AFTER: Partial<Record<ErrorCode, string>> = { disk_full: '30', disk_failed: '30' };

/** An answer that is an error, ready to be sent by the framework or written to a socket. */
export interface ProblemAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Anything that was thrown, as something that a caller may see. The unexpected shows nothing of itself. */
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

/** Whether it is this service that failed, not the request: worth a line in the log. */
export function isOurs(problem: Problem): boolean {
  return problem.status >= 500;
}

/** What tells nothing that went wrong, or was told once where it was noticed: `disk.full`, `overload.refuses`. */
const TOLD: ReadonlySet<ErrorCode> = new Set([
  'overloaded',
  'stopping',
  'not_ready',
  'disk_full',
  'disk_failed',
]);

/** Whether the log says it already, however many are answered with it. */
export function isTold({ code }: Problem): boolean {
  return TOLD.has(code);
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
