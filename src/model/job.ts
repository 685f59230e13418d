/**
 * A job: its states, and the rules that decide what happens to it next.
 *
 *                        begin (push) │
 *                 claim               ▼ publish
 *     queued ───────────────▶ running ───────────────▶ finished
 *       │                     ▲  │ │ │
 *       │               claim │  │ │ │ error, source, lost (with budget left), release; never a push
 *       │                     │  │ │ └─────────▶ retrying ──┐
 *       │                     └──┼─┼───────────────┘        │
 *       │                        │ │ budget used up,        │
 *       │                        │ │ timeout, memory,       │
 *       │                        │ │ output, guard, invalid │
 *       │                        │ └─────▶ failed           │
 *       │ cancel: at once        │ cancel: when it ends     │ cancel: at once
 *       └────────────────────────┴──────▶ canceled ◀────────┘
 *
 * Cancelling a running job notes the wish, and its holder is told. From then on the job ends as canceled whatever
 * becomes of the attempt: its holder ended it, it failed, was lost (the reaper says so), was released, or wanted
 * to publish. Run-now makes a queued or retrying job due at once. What is finished, failed or canceled never
 * changes again.
 *
 * Of a workflow's unfinished jobs one has slot 0. With `overlap: buffer` another one waits in slot 1, where nobody
 * claims it, and moves up in the transaction that ends the first. While a workflow is paused or archived its
 * waiting jobs stay as they are; what runs goes on.
 *
 * `attempt` is the fence: it grows with every claim, and every write of a run names (job, attempt).
 */
import { fullJitterMs } from '../std/backoff.ts';
import { MAX_BACKOFF_MS } from './workflow.ts';

export const JOB_STATES = ['queued', 'running', 'retrying', 'finished', 'failed', 'canceled'] as const;
export type JobState = (typeof JOB_STATES)[number];

export const JOB_ORIGINS = ['api', 'schedule', 'cli', 'push'] as const;
export type JobOrigin = (typeof JOB_ORIGINS)[number];

/** Why a job failed. `error` and `source` are retried; `lost` by a budget of its own; the others never. */
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

/** How the records of a published run differ from the version before. */
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
  /** 0, or 1 for the job that waits behind another (`overlap: buffer`). */
  slot: number;
  state: JobState;
  origin: JobOrigin;
  attempt: number;
  failures: number;
  crashes: number;
  priority: number;
  runAt: number;
  /** Somebody wants it ended: its holder will, or the reaper if that one is gone. */
  cancelRequestedAt: number | null;
  reason: FailureReason | null;
  /** Why it failed, or who canceled it. */
  error: string | null;
  /** How far the attempt is, or came. */
  progress: Progress | null;
  /** The version that it published, or that it found unchanged; null while it has not finished. */
  version: number | null;
  records: RecordCounts | null;
  createdAt: number;
  startedAt: number | null;
  finishedAt: number | null;
  /** The trace that it belongs to, as `traceparent`: what has queued it. */
  trace: string | null;
}

/** How far a run is. `message` and `pages` are what the source says of itself. */
export interface Progress {
  records: number;
  bytes: number;
  pages: number | null;
  message: string | null;
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One line of an attempt's log. `seq` counts its lines from 1; where numbers are missing, lines were left out. */
export interface LogLine {
  seq: number;
  at: number;
  level: LogLevel;
  text: string;
}

/** What a line counts towards the bounds of logs: its text in UTF-8, and 48 bytes that every line costs besides. */
export function logLineBytes(text: string): number {
  return Buffer.byteLength(text) + 48;
}

/** Names one attempt of one job: the right to write for it. */
export interface AttemptLease {
  teamId: string;
  jobId: string;
  attempt: number;
}

/** A child process of an attempt; the start time tells it from a later process with the same pid. */
export interface ProcessMark {
  pid: number;
  startedAt: string;
}

/** A lease lasts this long; it is renewed every `BEAT_MS`. */
export const LEASE_MS = 30_000;
export const BEAT_MS = 10_000;
/** A job may lose its process so many times before it fails. */
export const MAX_CRASHES = 2;

/** What becomes of a running job whose attempt has failed. */
export type AfterFailure = { state: 'retrying'; runAt: number } | { state: 'failed' };

/** What becomes of a running job whose attempt has not published. */
export type AfterAttempt = AfterFailure | { state: 'canceled' };

/** Decides after a failure that the run itself reported. */
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
 * Decides after an attempt vanished: its process or its node died. `crashes` includes this one. A push is never
 * tried again: its records went with the process that held them.
 */
export function afterCrash(input: { origin: JobOrigin; crashes: number; nowMs: number }): AfterFailure {
  if (input.origin === 'push' || input.crashes > MAX_CRASHES) return { state: 'failed' };
  return { state: 'retrying', runAt: input.nowMs };
}

/** Decides after a holder released its attempt: due at once, at no cost to any budget. A push has failed. */
export function afterRelease(input: { origin: JobOrigin; nowMs: number }): AfterFailure {
  return input.origin === 'push' ? { state: 'failed' } : { state: 'retrying', runAt: input.nowMs };
}

/** A wish to cancel wins over whatever the attempt comes to. */
export function unlessCanceled<Then>(
  job: { cancelRequestedAt: number | null },
  then: Then,
): Then | { state: 'canceled' } {
  return job.cancelRequestedAt === null ? then : { state: 'canceled' };
}

/** What a wish to cancel does: ends a job that waits, is noted on one that runs, leaves an ended one alone. */
export function onCancel(state: JobState): 'canceled' | 'canceling' | 'ended' {
  if (isWaiting(state)) return 'canceled';
  return state === 'running' ? 'canceling' : 'ended';
}

/** Whether a job waits for an attempt, and can be brought forward. */
export function isWaiting(state: JobState): boolean {
  return state === 'queued' || state === 'retrying';
}

/** Whether the state is final. */
export function hasEnded(state: JobState): boolean {
  return state === 'finished' || state === 'failed' || state === 'canceled';
}
