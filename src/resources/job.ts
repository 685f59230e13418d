/** A job and its log, as the API returns them, and sentences about the state of a job. */
import { findingFields } from '../model/event-catalog.ts';
import {
  FAILURE_REASONS,
  JOB_ORIGINS,
  JOB_STATES,
  type Job,
  type JobState,
  LOG_LEVELS,
  type LogLine,
} from '../model/job.ts';
import type { JobFinding } from '../model/quality/expect.ts';
import { findingSentence } from '../model/quality/judge.ts';
import { toIso } from '../std/clock.ts';
import {
  as,
  choice,
  exactly,
  integer,
  type Json,
  list,
  named,
  nullable,
  object,
  type Shape,
  text,
  time,
} from '../std/shape.ts';
import { ENDED as ENDED_AT, IDS, QUEUED, STARTED } from './examples.ts';

/** How the records of a job differ from the previous version. */
export const recordCounts = object({
  total: integer('Number of records in the version'),
  added: integer('Number of records that are not in the previous version'),
  changed: integer('Number of records that differ from the previous version'),
  removed: integer('Number of records of the previous version that are gone'),
});

const said = exactly(
  object({ ...findingFields, message: text('Sentence that says what was found and what was expected') }),
);
/** A finding with its sentence, which is made on reading: stored sentences would keep the words of former versions. */
const finding: Shape<Json<typeof said>, JobFinding> = {
  ...said,
  of: (one) => said.of({ ...one, message: findingSentence(one) }),
};

const whole = object({
  id: text(),
  workflowId: text(),
  state: choice(JOB_STATES),
  origin: choice(JOB_ORIGINS),
  priority: integer('Priority among the waiting jobs of the team: jobs with a higher number start first'),
  attempt: integer('Number of attempts started so far'),
  nextAttemptAt: nullable(time('Time of the next attempt (ISO 8601). `null` unless `state` is `retrying`')),
  cancelRequestedAt: nullable(time('Time when cancellation was requested. `null` if it was not')),
  reason: nullable(
    choice(FAILURE_REASONS, 'Cause of the failure, or of the last failed attempt. `null` if there is none'),
  ),
  error: nullable(text('Human-readable reason, or who canceled the job. `null` if there is none')),
  progress: as(
    'Progress of the current or last attempt. `null` before the first report',
    nullable(
      object({
        records: integer('Number of records read'),
        bytes: integer('Number of bytes read'),
        pages: nullable(integer('Number of pages read. `null` if the source does not report it')),
        message: nullable(text('Message from the source. `null` if there is none')),
      }),
    ),
  ),
  version: nullable(
    integer('Version that the job published or found unchanged. `null` until the job has finished'),
  ),
  records: as(
    'Number of records in `version`, and changes from the version before. `null` until the job has finished',
    nullable(recordCounts),
  ),
  quarantined: nullable(
    integer(
      'Number of records set aside, because they did not meet an expectation. `null` until the job has finished',
    ),
  ),
  findings: as(
    'Expectations of the workflow that the run did not meet, and unusual differences from earlier runs (`drift`), at most 50. `null` if there are none',
    nullable(list(finding)),
  ),
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
  quarantined: 0,
  findings: null,
  queuedAt: QUEUED,
  startedAt: STARTED,
  finishedAt: ENDED_AT,
});

export function shownJob(of: Job) {
  return jobResource.of(jobFields(of));
}

/** The input of `jobResource`. */
export function jobFields(of: Job) {
  const { state, runAt, createdAt } = of;
  return { ...of, nextAttemptAt: state === 'retrying' ? runAt : null, queuedAt: createdAt };
}

const { id, state, queuedAt, startedAt, finishedAt } = whole.fields;
/** The summary of a job in lists of recent jobs. */
export const glance = object({ id, state, queuedAt, startedAt, finishedAt });

export const logLineResource = named(
  'LogLine',
  object({
    seq: integer('Line number within the attempt, counting from 1. Gaps mean that lines were dropped'),
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

export const ENDED: readonly JobState[] = ['finished', 'failed', 'canceled'];

/** The state of a job, phrased to follow `it`: `failed at … (timeout)`. */
function stateWords(job: Job): string {
  const at = job.finishedAt === null ? '' : ` at ${toIso(job.finishedAt)}`;
  switch (job.state) {
    case 'finished':
      return `finished${at}`;
    case 'failed':
      return `failed${at} (${job.reason ?? 'error'})`;
    case 'canceled':
      return `was canceled${at}`;
    case 'running':
      return `is running (attempt ${job.attempt})`;
    case 'queued':
    case 'retrying':
      return 'is waiting';
  }
}

/** Why a job cannot be canceled. */
export function endedSentence(job: Job): string {
  return `This job has already ended: it ${stateWords(job)}. Nothing is left to cancel`;
}

/** Why `run-now` has no effect on a job. */
export function notWaitingSentence(job: Job): string {
  const next = ENDED.includes(job.state) ? '. Rerun the job to queue another one' : '';
  return `This job is not waiting: it ${stateWords(job)}${next}`;
}
