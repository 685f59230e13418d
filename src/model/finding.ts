/** What an operator is shown of an installation: the findings of `flowhook doctor`, and its settings. */

export const FINDING_STATUSES = ['ok', 'warning', 'error', 'skipped'] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

/** What checks are about, in the order in which findings are shown. */
export const CHECK_GROUPS = [
  'machine',
  'settings',
  'files',
  'database',
  'backups',
  'network',
  'work',
] as const;
export type CheckGroup = (typeof CHECK_GROUPS)[number];

export interface Finding {
  group: CheckGroup;
  /** The name of the check, which never changes. */
  check: string;
  status: FindingStatus;
  /** What was found: a sentence. */
  what: string;
  /** What comes of it, or why it was not checked; null when all is well. */
  why: string | null;
  /** The next step; null when there is none to take. */
  fix: string | null;
  tookMs: number;
}

/** All findings of one run. Times in epoch milliseconds. */
export interface Examination {
  examinedAt: number;
  tookMs: number;
  findings: Finding[];
}

export const SETTING_ORIGINS = ['flag', 'environment', 'file', 'default'] as const;

export interface EffectiveSetting {
  /** In `flowhook.yaml`. */
  name: string;
  /** In the environment. */
  variable: string;
  /** What holds, defaults that follow from other settings included; `***` for a secret; null: there is none. */
  value: string | null;
  origin: (typeof SETTING_ORIGINS)[number];
  /** The place as the user would name it: `--port`, `FLOWHOOK_PORT`, `flowhook.yaml: port`; null for a default. */
  from: string | null;
  /** What it is for. */
  sentence: string;
}
