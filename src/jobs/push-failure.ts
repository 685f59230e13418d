/** Maps the errors of a push to the reason of its job and to the error that the client gets. */
import { Problem } from '../model/error.ts';
import type { FailureReason, Job } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import { TooManyRecordsError } from '../records/ingest-batch.ts';
import { MalformedError } from '../std/lines.ts';
import { BrokenOffError } from './push-records.ts';
import { jobHeaders } from './submit.ts';

/** The error for the client of a push that was canceled. */
export function canceledPush(job: Job): Problem {
  return new Problem('push_canceled', { headers: jobHeaders(job) });
}

export class CanceledError extends Error {}
export class GuardError extends Error {}
export class TimeoutError extends Error {}

/** @returns the reason and message for the job, and `toThrow`, which returns the error for the client */
export function failureOf(error: unknown): {
  reason: FailureReason;
  message: string;
  toThrow(job: Job): unknown;
} {
  const message = error instanceof Error ? error.message : String(error);
  const refused = (reason: FailureReason, code: 'push_refused' | 'push_timeout' = 'push_refused') => ({
    reason,
    message,
    toThrow: (job: Job) =>
      new Problem(code, { sentence: message, headers: { ...jobHeaders(job), 'x-job-reason': reason } }),
  });
  if (error instanceof InvalidRecordError) return refused('invalid_record');
  if (error instanceof MalformedError || error instanceof TooManyRecordsError) return refused('output');
  if (error instanceof GuardError) return refused('guard');
  if (error instanceof TimeoutError) return refused('timeout', 'push_timeout');
  return { reason: error instanceof BrokenOffError ? 'lost' : 'error', message, toThrow: () => error };
}
