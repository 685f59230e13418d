/** A job as callers see it, over HTTP and at the shell, and sentences about its state. */
import { FAILURE_REASONS, JOB_ORIGINS, JOB_STATES, type Job, type JobState } from '../model/job.ts';
import { toIso, toIsoOrNull } from '../std/clock.ts';
import { isoTime, isoTimeOrNull } from '../std/shape.ts';
import type { JobGlance } from '../store/job-operations.ts';

export type ShownJob = ReturnType<typeof shownJob>;

/** The states before and after the end of a job. */
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
    cancelRequestedAt: toIsoOrNull(job.cancelRequestedAt),
    reason: job.reason,
    error: job.error,
    progress: job.progress,
    version: job.version,
    records: job.records,
    queuedAt: toIso(job.createdAt),
    startedAt: toIsoOrNull(job.startedAt),
    finishedAt: toIsoOrNull(job.finishedAt),
  };
}

/** The same as JSON Schema. */
export const jobSchema = {
  type: 'object',
  required: ['id', 'workflowId', 'state', 'origin', 'attempt', 'queuedAt'],
  properties: {
    id: { type: 'string' },
    workflowId: { type: 'string' },
    state: { enum: JOB_STATES },
    origin: { enum: JOB_ORIGINS },
    priority: { type: 'integer', description: 'The highest of a team goes first' },
    attempt: { type: 'integer', description: 'Attempts started so far' },
    nextAttemptAt: { ...isoTimeOrNull, description: 'Of a job that is `retrying`' },
    cancelRequestedAt: isoTimeOrNull,
    reason: {
      enum: [...FAILURE_REASONS, null],
      description: 'Why it failed, or why its last attempt did',
    },
    error: { type: ['string', 'null'], description: 'The same as a sentence; of a canceled job: by whom' },
    progress: {
      type: ['object', 'null'],
      description: 'How far the attempt is, or came',
      properties: {
        records: { type: 'integer' },
        bytes: { type: 'integer' },
        pages: { type: ['integer', 'null'], description: 'What the source says of itself' },
        message: { type: ['string', 'null'], description: 'What the source says of itself' },
      },
    },
    version: { type: ['integer', 'null'], description: 'The version that it published or found unchanged' },
    records: {
      type: ['object', 'null'],
      properties: {
        total: { type: 'integer' },
        added: { type: 'integer' },
        changed: { type: 'integer' },
        removed: { type: 'integer' },
      },
    },
    queuedAt: isoTime,
    startedAt: isoTimeOrNull,
    finishedAt: isoTimeOrNull,
  },
};

export type ShownGlance = ReturnType<typeof shownGlance>;

/** A job in short, for lists of recent jobs. */
export function shownGlance({ id, state, createdAt, startedAt, finishedAt }: JobGlance) {
  return {
    id,
    state,
    queuedAt: toIso(createdAt),
    startedAt: toIsoOrNull(startedAt),
    finishedAt: toIsoOrNull(finishedAt),
  };
}

/** The state of a job as a sentence: `It failed at … (timeout)`. */
function stateSentence(job: Job): string {
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

/** Why a job cannot be canceled. */
export function endedSentence(job: Job): string {
  return `This job has already ended. ${stateSentence(job)}: there is nothing left to cancel`;
}

/** Why a job cannot be brought forward. */
export function notWaitingSentence(job: Job): string {
  const next = ENDED.includes(job.state) ? 'rerun it to queue another one' : 'there is nothing to wait for';
  return `This job does not wait. ${stateSentence(job)}: ${next}`;
}
