/**
 * A job: its states, and the rules that decide what happens to it next.
 *
 *                        begin (push) │
 *                 claim                ▼ publish
 *     queued ───────────────▶ running ───────────────▶ finished
 *       │                     ▲  │ │
 *       │               claim │  │ │ error, source, lost (with budget left), release; never a push
 *       │                     │  │ └───────────▶ retrying ──┐
 *       │                     └──┼─────────────────┘        │
 *       │                        │ budget used up, timeout, │
 *       │                        │ output, guard, invalid   │ cancel
 *       │ cancel                 ▼                          ▼
 *       └───────────────────▶ failed                     canceled
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
  runAt: number;
  reason: FailureReason | null;
  error: string | null;
  /** The version that it published, or that it found unchanged; null while it has not finished. */
  version: number | null;
  records: RecordCounts | null;
  createdAt: number;
  startedAt: number | null;
  finishedAt: number | null;
}

/** Names one attempt of one job: the right to write for it. */
export interface Held {
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
/** A node that could not renew for this long ends its own children, before anybody else may take over. */
export const SELF_FENCE_MS = 20_000;
/** A job may lose its process this often before it fails. */
export const MAX_CRASHES = 2;

/** What becomes of a running job whose attempt has failed. */
export type AfterFailure = { state: 'retrying'; runAt: number } | { state: 'failed' };

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
