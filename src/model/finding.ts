/** What operators see about an installation: the findings of `flowhook doctor`, and the settings. */

export const FINDING_STATUSES = ['ok', 'warning', 'error', 'skipped'] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

/** Groups of checks, in the order in which findings are listed. */
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
  /** Name of the check. The name of a check never changes. */
  check: string;
  status: FindingStatus;
  /** What was found, as a sentence. */
  what: string;
  /** The consequences of the problem, or why the check was skipped; null if the status is `ok`. */
  why: string | null;
  /** What the operator should do next; null if nothing is needed. */
  fix: string | null;
  tookMs: number;
}

/** All findings of one run of `flowhook doctor`. Times are in epoch milliseconds. */
export interface Examination {
  examinedAt: number;
  tookMs: number;
  findings: Finding[];
}

export const SETTING_ORIGINS = ['flag', 'environment', 'file', 'default'] as const;

export interface EffectiveSetting {
  /** Name of the setting in `flowhook.yaml`. */
  name: string;
  /** Name of the environment variable. */
  variable: string;
  /**
   * The effective value, including defaults derived from other settings; `***` for a secret; null if the setting has no
   * value.
   */
  value: string | null;
  origin: (typeof SETTING_ORIGINS)[number];
  /** Where the value is set: `--port`, `FLOWHOOK_PORT`, `flowhook.yaml: port`; null if the value is the default. */
  from: string | null;
  /** Description of the setting. */
  sentence: string;
}
