/** A job and its log as callers see them, and sentences about the state of a job. */
import {
  FAILURE_REASONS,
  JOB_ORIGINS,
  JOB_STATES,
  type Job,
  type JobState,
  LOG_LEVELS,
  type LogLine,
} from '../model/job.ts';
import { toIso } from '../std/clock.ts';
import { as, choice, integer, named, nullable, object, text, time } from '../std/shape.ts';
import { ENDED as ENDED_AT, IDS, QUEUED, STARTED } from './examples.ts';

/** How the records of a run differ from the version before. */
export const recordCounts = object({
  total: integer(),
  added: integer(),
  changed: integer(),
  removed: integer(),
});

const whole = object({
  id: text(),
  workflowId: text(),
  state: choice(JOB_STATES),
  origin: choice(JOB_ORIGINS),
  priority: integer('The highest of a team goes first'),
  attempt: integer('Attempts started so far'),
  nextAttemptAt: nullable(time('Of a job that is `retrying`')),
  cancelRequestedAt: nullable(time()),
  reason: nullable(choice(FAILURE_REASONS, 'Why it failed, or why its last attempt did')),
  error: nullable(text('Human-readable reason, or who canceled it')),
  progress: as(
    'How far the attempt is, or came',
    nullable(
      object({
        records: integer(),
        bytes: integer(),
        pages: nullable(integer('What the source says of itself')),
        message: nullable(text('What the source says of itself')),
      }),
    ),
  ),
  version: nullable(integer('The version that it published or found unchanged')),
  records: nullable(recordCounts),
  queuedAt: time(),
  startedAt: nullable(time()),
  finishedAt: nullable(time()),
});

export const jobResource = named('Job', whole, {
  id: IDS.job,
  workflowId: IDS.workflow,
  state: 'finished',
  origin: 'api',
  priority: 0,
  attempt: 1,
  nextAttemptAt: null,
  cancelRequestedAt: null,
  reason: null,
  error: null,
  progress: { records: 120, bytes: 14_210, pages: 2, message: null },
  version: 17,
  records: { total: 120, added: 1, changed: 1, removed: 0 },
  queuedAt: QUEUED,
  startedAt: STARTED,
  finishedAt: ENDED_AT,
});

export function shownJob(of: Job) {
  return jobResource.of(madeOf(of));
}

/** What the JSON is made of. */
export function madeOf(of: Job) {
  const { state, runAt, createdAt } = of;
  return { ...of, nextAttemptAt: state === 'retrying' ? runAt : null, queuedAt: createdAt };
}

const { id, state, queuedAt, startedAt, finishedAt } = whole.fields;
/** A job in short, for lists of recent jobs. */
export const glance = object({ id, state, queuedAt, startedAt, finishedAt });

export const logLineResource = named(
  'LogLine',
  object({
    seq: integer('Counts the lines of an attempt from 1; missing numbers were left out'),
    time: time(),
    level: choice(LOG_LEVELS),
    text: text(),
  }),
  { seq: 1, time: STARTED, level: 'info', text: 'Reading page 1' },
);

export function shownLine({ at, ...of }: LogLine) {
  return logLineResource.of({ ...of, time: at });
}

/** `2026-01-01T06:00:03.120Z info  the text`; further lines of the text are indented. */
export function textOf({ at, level, text }: LogLine): string {
  return `${toIso(at)} ${level.padEnd(5)} ${text.replaceAll('\n', '\n  ')}`;
}

/** The states before and after the end of a job. */
export const UNFINISHED: readonly JobState[] = ['queued', 'running', 'retrying'];
export const ENDED: readonly JobState[] = ['finished', 'failed', 'canceled'];

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
