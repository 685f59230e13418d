/** What goes wrong with a push: what it means for its job, and for whoever pushes. */
import { Problem } from '../model/error.ts';
import type { FailureReason, Job } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import { TooManyRecordsError } from '../records/ingest-batch.ts';
import { MalformedError } from '../std/splitter.ts';
import { BrokenOffError } from './push-records.ts';
import { jobHeaders } from './submit.ts';

/** What whoever pushes a job that somebody canceled is told. */
export function canceledPush(job: Job): Problem {
  return new Problem('push_canceled', { headers: jobHeaders(job) });
}

export class CanceledError extends Error {}
export class GuardError extends Error {}
export class TimeoutError extends Error {}

/** What an error means for the job, and for whoever pushes. */
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
