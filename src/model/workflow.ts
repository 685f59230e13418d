/** A workflow produces records under a name. This file has its definition with all settings. */

import type { HttpSource } from './http-source.ts';
import type { Expect } from './quality/expect.ts';

/** Maximum size of the state of a source as JSON, in bytes. */
export const MAX_STATE_BYTES = 1_048_576;

/** The source of the records. `file` and `directory` are relative to the workflows directory of this node. */
export type Source =
  | {
      type: 'command';
      /** `${state}` and `${config}` in an argument are replaced with the paths of files created for the run. */
      command: string[];
      protocol: Protocol;
      /** The Singer streams whose records are used. Null: the records of all streams are used. */
      streams: string[] | null;
      env: Record<string, string>;
      /** The configuration of a command, written to a file as JSON for each run. Its strings may contain secrets. */
      config: Record<string, unknown> | null;
      directory: string;
    }
  | { type: 'module'; file: string }
  | HttpSource
  /** Records are pushed over the API or with `flowhook data import`. */
  | { type: 'push' };

export const SOURCE_TYPES: readonly Source['type'][] = ['command', 'module', 'http', 'push'];

/** Output protocols of a command: one JSON object per line, or the messages of the Singer specification. */
export const PROTOCOLS = ['ndjson', 'singer'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** When a workflow runs automatically. `missed` decides about runs whose due time passed while the service was down. */
export type Schedule = ({ cron: string; timezone: string } | { everyMs: number }) & { missed: Missed };

/** `run`: one run starts, however many runs were missed. `skip`: no run starts. */
export const MISSED = ['run', 'skip'] as const;
export type Missed = (typeof MISSED)[number];

/** How the records of a run are combined with the records that are already published. */
export const MODES = ['replace', 'upsert', 'append'] as const;
export type Mode = (typeof MODES)[number];

export const OVERLAPS = ['reject', 'buffer'] as const;
export type Overlap = (typeof OVERLAPS)[number];

/** What a run does with an invalid record: it fails, or skips the record. */
export const ON_INVALID = ['fail', 'skip'] as const;
export type OnInvalid = (typeof ON_INVALID)[number];

/** When two states of a record are equal: if their values are, or only if their JSON texts are. */
export const COMPARES = ['value', 'text'] as const;
export type Compare = (typeof COMPARES)[number];

/**
 * How long versions are kept: the newest `versions` of them, and none that was superseded more than `days` ago. The
 * newest version is always kept.
 */
export interface Keep {
  versions: number;
  days: number;
}

/** A definition with all defaults filled in, as stored in the workflow's row as JSON. */
export interface Definition {
  name: string;
  source: Source;
  /** The fields whose values make up the id of a record; empty: each record has its own `id`. */
  key: string[];
  mode: Mode;
  onInvalid: OnInvalid;
  overlap: Overlap;
  schedule: Schedule | null;
  /** Priority of the workflow's jobs: the waiting job of the team with the highest priority starts first. */
  priority: number;
  expect: Expect;
  /**
   * `timeoutMs` limits the duration of an attempt, `memoryBytes` the memory of all its processes together,
   * `outputBytes` the size of its output.
   */
  limits: { timeoutMs: number; records: number; memoryBytes: number; outputBytes: number };
  retries: { max: number; backoffMs: number };
  /** Undefined: `DEFAULT_KEEP`. */
  keep?: Keep;
  /** Undefined: by value. */
  compare?: Compare;
  /** The definition as the API received it, to which later changes are applied; undefined for workflow files. */
  asSent?: Record<string, unknown>;
}

/** Identifies a workflow. */
export interface WorkflowRef {
  teamId: string;
  workflowId: string;
}

/** A workflow in the database. Times in epoch milliseconds. */
export interface Workflow {
  teamId: string;
  id: string;
  definition: Definition;
  definitionHash: string;
  pausedAt: number | null;
  archivedAt: number | null;
  /** The newest published version; 0 before the first version is published. */
  currentVersion: number;
  /** The oldest version that has not been pruned. */
  oldestVersion: number;
  /** When the schedule is next due; null without a schedule. Does not change while the workflow is paused. */
  nextRunAt: number | null;
  /**
   * When the workflow becomes stale unless a run succeeds before, or became due if it is stale; null without `fresh`. Does
   * not change while the workflow is paused.
   */
  freshDueAt: number | null;
  /** When the workflow was found to be stale; null if it is not. */
  staleSince: number | null;
  createdAt: number;
  updatedAt: number;
}

/** Prefix of the hash of a definition that was created over the API. Hashes of workflow files have no prefix. */
const OF_API = 'api:';

export function ofApiHash(hash: string): string {
  return OF_API + hash;
}

/** Whether a workflow was created over the API rather than loaded from a file. */
export function isOfApi({ definitionHash }: Pick<Workflow, 'definitionHash'>): boolean {
  return definitionHash.startsWith(OF_API);
}

export const DEFAULT_LIMITS = {
  timeoutMs: 15 * 60_000,
  records: 5_000_000,
  memoryBytes: 512 * 1_000_000,
  outputBytes: 2_000_000_000,
} as const;
export const MAX_PRIORITY = 100;
export const DEFAULT_KEEP: Keep = { versions: 10, days: 30 };
export const MOST_KEPT: Keep = { versions: 10_000, days: 3_650 };
export const DEFAULT_RETRIES = { max: 2, backoffMs: 5_000 } as const;
/** Maximum delay of a retry. */
export const MAX_BACKOFF_MS = 10 * 60_000;

/** Whether the text can be a workflow's id: 1 to 200 characters, without control characters or slashes. */
export function isWorkflowId(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  return /^[^\u0000-\u001f\u007f/\\]{1,200}$/u.test(text) && text !== '.' && text !== '..';
}
