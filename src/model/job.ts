/**
 * A job: its states, and the rules that decide what happens to it next.
 *
 *                        begin (push) │
 *                 claim               ▼ publish
 *     queued ───────────────▶ running ───────────────▶ finished
 *       │                     ▲  │ │ │
 *       │               claim │  │ │ │ error, source, lost (with retries left), release; never a push
 *       │                     │  │ │ └─────────▶ retrying ──┐
 *       │                     └──┼─┼───────────────┘        │
 *       │                        │ │ no retries left,       │
 *       │                        │ │ timeout, memory,       │
 *       │                        │ │ output, guard, invalid │
 *       │                        │ └─────▶ failed           │
 *       │ cancel: immediately    │ cancel: when it ends     │ cancel: immediately
 *       └────────────────────────┴──────▶ canceled ◀────────┘
 *
 * Canceling a running job stores the request and notifies the node that holds the job. The job then ends as canceled,
 * even if the attempt fails, is lost (the reaper ends it), is released, or tries to publish. Run-now makes a queued or
 * retrying job due immediately. Finished, failed and canceled jobs never change.
 *
 * The first unfinished job of a workflow has slot 0. With `overlap: buffer`, a second job waits in slot 1, where it
 * cannot be claimed, and moves to slot 0 in the transaction that ends the first. Pausing or archiving a workflow keeps
 * its waiting jobs from starting; a running job continues.
 *
 * `attempt` is the fencing token: every claim increments it, and every write of a run names (job, attempt).
 */
import { fullJitterMs } from '../std/backoff.ts';
import type { JobFinding } from './quality/expect.ts';
import { MAX_BACKOFF_MS } from './workflow.ts';

export const JOB_STATES = ['queued', 'running', 'retrying', 'finished', 'failed', 'canceled'] as const;
export type JobState = (typeof JOB_STATES)[number];

export const JOB_ORIGINS = ['api', 'schedule', 'cli', 'push'] as const;
export type JobOrigin = (typeof JOB_ORIGINS)[number];

/**
 * Why a job failed. `error` and `source` are retried as the workflow configures. `lost` is retried up to `MAX_CRASHES`
 * times. Other failures are not retried.
 */
export const FAILURE_REASONS = [
  'error',
  'source',
  'lost',
  'timeout',
  'memory',
  'output',
  'guard',
  'invalid_record',
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** How the records of a published run differ from the previous version. */
export interface RecordCounts {
  total: number;
  added: number;
  changed: number;
  removed: number;
}

/** One run of a workflow. Times in epoch milliseconds. */
export interface Job {
  teamId: string;
  id: string;
  workflowId: string;
  /** 0, or 1 for a job that waits until another job of the workflow has ended (`overlap: buffer`). */
  slot: number;
  state: JobState;
  origin: JobOrigin;
  attempt: number;
  failures: number;
  crashes: number;
  priority: number;
  runAt: number;
  /**
   * When cancellation was requested. The node that holds the job ends the job; if that node is gone, the reaper does.
   */
  cancelRequestedAt: number | null;
  reason: FailureReason | null;
  /** Why the job failed, or who canceled it. */
  error: string | null;
  /** Progress of the current or last attempt. */
  progress: Progress | null;
  /** The version that the job published or found unchanged; null until it has finished. */
  version: number | null;
  records: RecordCounts | null;
  /** How many records the job has set aside; null until it has finished. */
  quarantined: number | null;
  /** What the run did not meet of the expectations of its workflow; null if it met all, or was not judged. */
  findings: JobFinding[] | null;
  createdAt: number;
  startedAt: number | null;
  finishedAt: number | null;
  /** The trace of the request or schedule that queued the job, as `traceparent`. */
  trace: string | null;
}

/** The first values of the fields that most new jobs have in common. The store reads a column for each. */
export const NEW_JOB = {
  state: 'queued',
  attempt: 0,
  failures: 0,
  crashes: 0,
  cancelRequestedAt: null,
  reason: null,
  error: null,
  progress: null,
  version: null,
  records: null,
  quarantined: null,
  findings: null,
  startedAt: null,
  finishedAt: null,
  trace: null,
} as const satisfies Partial<Job>;

/** Progress of a run. The source reports `message` and `pages`. */
export interface Progress {
  records: number;
  bytes: number;
  pages: number | null;
  message: string | null;
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One line of an attempt's log. `seq` counts lines from 1; gaps mean that lines were dropped. */
export interface LogLine {
  seq: number;
  at: number;
  level: LogLevel;
  text: string;
}

/**
 * Size of a log line, which counts toward the limits of logs: the bytes of its text in UTF-8, plus 48 bytes of
 * overhead.
 */
export function logLineBytes(text: string): number {
  return Buffer.byteLength(text) + 48;
}

/** Identifies one attempt of a job, which has the right to write for the job while it is the current attempt. */
export interface AttemptLease {
  teamId: string;
  jobId: string;
  attempt: number;
}

/** A child process of an attempt. `startedAt` distinguishes it from a later process with the same pid. */
export interface ProcessMark {
  pid: number;
  startedAt: string;
}

/** Duration of a lease. A lease is renewed three times within this duration. */
export const LEASE_MS = 30_000;
/** Maximum number of retries of a job after lost attempts. */
export const MAX_CRASHES = 2;

/** The state of a job after a failed attempt. */
export type AfterFailure = { state: 'retrying'; runAt: number } | { state: 'failed' };

/** The state of a job after an attempt that did not publish. */
export type AfterAttempt = AfterFailure | { state: 'canceled' };

/** Decides what follows a failure that the run reported. */
export function afterFailure(input: {
  reason: FailureReason;
  /** Failures including this one. */
  failures: number;
  retries: { max: number; backoffMs: number };
  nowMs: number;
  random: number;
}): AfterFailure {
  const retried = input.reason === 'error' || input.reason === 'source';
  if (!retried || input.failures > input.retries.max) return { state: 'failed' };
  const waitMs = fullJitterMs({
    failures: input.failures,
    baseMs: input.retries.backoffMs,
    maxMs: MAX_BACKOFF_MS,
    random: input.random,
  });
  return { state: 'retrying', runAt: input.nowMs + waitMs };
}

/**
 * Decides what follows an attempt whose process or node died. `crashes` includes this attempt. A push is never retried,
 * because its records were lost with the process.
 */
export function afterCrash(input: { origin: JobOrigin; crashes: number; nowMs: number }): AfterFailure {
  if (input.origin === 'push' || input.crashes > MAX_CRASHES) return { state: 'failed' };
  return { state: 'retrying', runAt: input.nowMs };
}

/**
 * Decides what follows a released attempt. The job is due again immediately, and the attempt does not count as a
 * failure. A push fails.
 */
export function afterRelease(input: { origin: JobOrigin; nowMs: number }): AfterFailure {
  return input.origin === 'push' ? { state: 'failed' } : { state: 'retrying', runAt: input.nowMs };
}

/** Replaces any outcome of an attempt with `canceled` if cancellation of the job was requested. */
export function unlessCanceled<Then>(
  job: { cancelRequestedAt: number | null },
  then: Then,
): Then | { state: 'canceled' } {
  return job.cancelRequestedAt === null ? then : { state: 'canceled' };
}

/** What canceling does to a job: a waiting job ends, a running job is marked, and an ended job stays unchanged. */
export function onCancel(state: JobState): 'canceled' | 'canceling' | 'ended' {
  if (isWaiting(state)) return 'canceled';
  return state === 'running' ? 'canceling' : 'ended';
}

/** Whether a job is waiting for an attempt. Run-now makes such a job due immediately. */
export function isWaiting(state: JobState): boolean {
  return state === 'queued' || state === 'retrying';
}

export function hasEnded(state: JobState): boolean {
  return state === 'finished' || state === 'failed' || state === 'canceled';
}
