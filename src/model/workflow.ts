/** A workflow: a named producer of records, and the settings that its definition may hold. */
import type { HttpSource } from './http-source.ts';

/** Where records come from. `file` and `directory` are relative to the workflows folder of this node. */
export type Source =
  | {
      type: 'command';
      /** `${state}` and `${config}` in an argument stand for the paths of files that are made for the run. */
      command: string[];
      protocol: Protocol;
      /** The streams whose records are taken (Singer); null takes all. */
      streams: string[] | null;
      env: Record<string, string>;
      /** Written as JSON into a file for each run; its texts may hold secrets. */
      config: Record<string, unknown> | null;
      directory: string;
    }
  | { type: 'module'; file: string }
  | HttpSource
  /** Records arrive over the API or from `flowhook data import`. */
  | { type: 'push' };

export const SOURCE_TYPES: readonly Source['type'][] = ['command', 'module', 'http', 'push'];

/** How a command writes records: one JSON object a line, or the messages of the Singer specification. */
export const PROTOCOLS = ['ndjson', 'singer'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** When a workflow runs by itself. `missed` says what becomes of runs that were due while nothing could start them. */
export type Schedule = ({ cron: string; timezone: string } | { everyMs: number }) & { missed: Missed };

/** One run for however many were missed, or none. */
export const MISSED = ['run', 'skip'] as const;
export type Missed = (typeof MISSED)[number];

/** What a run does to the records of earlier runs. */
export const MODES = ['replace', 'upsert', 'append'] as const;
export type Mode = (typeof MODES)[number];

export const OVERLAPS = ['reject', 'buffer'] as const;
export type Overlap = (typeof OVERLAPS)[number];

/** What becomes of a run that brings a record that cannot be taken: it fails, or goes on without that record. */
export const ON_INVALID = ['fail', 'skip'] as const;
export type OnInvalid = (typeof ON_INVALID)[number];

/** A definition with every default filled in: what is stored, as JSON, in the workflow's row. */
export interface Definition {
  name: string;
  source: Source;
  /** Fields whose values make the record's id; empty: the record brings its own `id`. */
  key: string[];
  mode: Mode;
  onInvalid: OnInvalid;
  overlap: Overlap;
  schedule: Schedule | null;
  /** Among the waiting jobs of its team the highest goes first. */
  priority: number;
  guards: { minRecords: number; maxDropPercent: number | null };
  /** `timeoutMs` is for one attempt; `memoryBytes` for all processes of a run together; `outputBytes` for what it writes. */
  limits: { timeoutMs: number; records: number; memoryBytes: number; outputBytes: number };
  retries: { max: number; backoffMs: number };
  /** As it was sent, of one that was made over the API: what a change of it begins from. */
  asSent?: Record<string, unknown>;
}

/** Names a workflow. */
export interface WorkflowRef {
  teamId: string;
  workflowId: string;
}

/** One workflow as it stands in the database. Times in epoch milliseconds. */
export interface Workflow {
  teamId: string;
  id: string;
  definition: Definition;
  definitionHash: string;
  pausedAt: number | null;
  archivedAt: number | null;
  /** The last published version; 0 before the first. */
  currentVersion: number;
  /** The oldest version that can still be read. */
  oldestVersion: number;
  /** When its schedule is due next; null without one. While it is paused, this stands still. */
  nextRunAt: number | null;
  createdAt: number;
  updatedAt: number;
}

/** The prefix of the hash of a definition made over the API; the hashes of files have none. */
const OF_API = 'api:';

export function ofApiHash(hash: string): string {
  return OF_API + hash;
}

/** Whether a workflow was made over the API, and not brought in from a file. */
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
export const DEFAULT_RETRIES = { max: 2, backoffMs: 5_000 } as const;
/** A retry never waits longer than this. */
export const MAX_BACKOFF_MS = 10 * 60_000;

/** An empty run must not erase data, unless the run only adds. */
export function defaultMinRecords(mode: Mode): number {
  return mode === 'replace' ? 1 : 0;
}

/** A workflow's id: the operator's own string, 1 to 200 characters without control characters or slashes. */
export function isWorkflowId(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  return /^[^\u0000-\u001f\u007f/\\]{1,200}$/u.test(text) && text !== '.' && text !== '..';
}
