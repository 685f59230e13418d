/** A job as callers see it, over HTTP and at the shell; and how it stands, in words. */
import type { Job, JobState } from '../../model/job.ts';
import { toIso } from '../../std/clock.ts';
import type { JobGlance } from '../../store/job-operations.ts';

export type ShownJob = ReturnType<typeof shownJob>;

/** States of jobs that may still run, and of those that have ended. */
export const UNFINISHED: readonly JobState[] = ['queued', 'running', 'retrying'];
export const ENDED: readonly JobState[] = ['finished', 'failed', 'canceled'];

export function shownJob(job: Job) {
  return {
    id: job.id,
    workflowId: job.workflowId,
    state: job.state,
    origin: job.origin,
    priority: job.priority,
    attempt: job.attempt,
    nextAttemptAt: job.state === 'retrying' ? toIso(job.runAt) : null,
    cancelRequestedAt: isoOrNull(job.cancelRequestedAt),
    reason: job.reason,
    error: job.error,
    progress: job.progress,
    version: job.version,
    records: job.records,
    queuedAt: toIso(job.createdAt),
    startedAt: isoOrNull(job.startedAt),
    finishedAt: isoOrNull(job.finishedAt),
  };
}

export type ShownGlance = ReturnType<typeof shownGlance>;

/** What is told of a job where there are many. */
export function shownGlance({ id, state, createdAt, startedAt, finishedAt }: JobGlance) {
  return {
    id,
    state,
    queuedAt: toIso(createdAt),
    startedAt: isoOrNull(startedAt),
    finishedAt: isoOrNull(finishedAt),
  };
}

/** What has become of a job, for whoever wants something of it that comes too late: `It failed at … (timeout)`. */
export function standsHow(job: Job): string {
  const at = job.finishedAt === null ? '' : ` at ${toIso(job.finishedAt)}`;
  switch (job.state) {
    case 'finished':
      return `It finished${at}`;
    case 'failed':
      return `It failed${at} (${job.reason ?? 'error'})`;
    case 'canceled':
      return `It was canceled${at}`;
    case 'running':
      return `It runs, attempt ${job.attempt}`;
    case 'queued':
    case 'retrying':
      return 'It waits';
  }
}

/** Why a job cannot be canceled any more. */
export function endedSentence(job: Job): string {
  return `This job has already ended. ${standsHow(job)}: there is nothing left to cancel`;
}

/** Why a job cannot be brought forward. */
export function notWaitingSentence(job: Job): string {
  const next = ENDED.includes(job.state) ? 'rerun it to queue another one' : 'there is nothing to wait for';
  return `This job does not wait. ${standsHow(job)}: ${next}`;
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms);
}
