/**
 * Types for module workflows, imported as `flowhook/workflow`: the argument of a module, its records, and its settings.
 * They do not exist at run time, so import them with `import type`.
 */

/** One record: a plain object that can be written as JSON, with an `id` unless the workflow sets a `key`. */
export type Rec = Record<string, unknown>;

/**
 * The argument of the function that a module exports by default: `export default async function* (ctx: Context) { … }`.
 */
export interface Context {
  /** The state of the last published run. Changes to the state are stored only if this run publishes. */
  readonly state: {
    get(key: string): unknown;
    /** Sets a JSON value; `undefined` removes the key. The whole state may have at most 1 MiB. */
    set(key: string, value: unknown): void;
  };
  /** Returns a secret of the team. If the secret is missing, throws an error that says how to set it. */
  secret(name: string): string;
  /** Writes to the log of this run, like `console.*`. */
  readonly log: {
    debug(message: string, fields?: object): void;
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
    error(message: string, fields?: object): void;
  };
  /**
   * Reports progress: the number of pages read so far, and a short message. Omitted properties keep their value. Call
   * this as often as you like; progress is written at most once a second.
   */
  progress(said: { pages?: number; message?: string }): void;
  /**
   * Aborted when the run must stop: after its timeout, a cancellation or a shutdown. A module that reads this property
   * gets 10 s to clean up; any other module is ended immediately.
   */
  readonly signal: AbortSignal;
  /**
   * The global `fetch` with limits. It connects only to addresses that FLOWHOOK_ALLOW_NETWORKS allows, sends the user agent
   * of Flowhook unless you set one, waits for at most 4 responses of one host at a time, and is aborted with `signal`.
   * After 429 or 503 with a `Retry-After` of at most 2 minutes it waits and retries, at most 5 times. A request whose body
   * is a stream cannot be retried: its first response is returned.
   */
  readonly fetch: typeof globalThis.fetch;
}

/** Expectations of a field; `type` is needed for bounds of dates, texts and lists. */
export interface ExpectedField {
  type?:
    | 'text'
    | 'number'
    | 'integer'
    | 'boolean'
    | 'list'
    | 'object'
    | 'url'
    | 'email'
    | 'date'
    | 'datetime';
  min?: number | string;
  max?: number | string;
  /** Minimum share of records with a value, such as `'98%'`. */
  filled?: string;
  /** Whether no two records have the same value. */
  unique?: boolean;
  oneOf?: (string | number | boolean)[];
  /** A regular expression in the syntax of RE2. */
  matches?: string;
}

/** The optional `export const workflow: Workflow = { … }`: the settings of a YAML file, without `source`. */
export interface Workflow {
  name?: string;
  /** Names of the fields whose values form the id of a record (default: the record's own `id`). */
  key?: string[];
  mode?: 'replace' | 'upsert' | 'append';
  /** What happens after an invalid record: `fail` fails the run, `skip` leaves the record out. */
  onInvalid?: 'fail' | 'skip';
  overlap?: 'reject' | 'buffer';
  /** A cron expression such as `'0 6 * * 1-5'` (in `timezone`, default: UTC), or an interval `every`, such as `'15m'`. */
  schedule?:
    | string
    | { cron: string; timezone?: string; missed?: 'run' | 'skip' }
    | { every: string; missed?: 'run' | 'skip' };
  /**
   * A number from -100 to 100 (default: 0). Among the waiting jobs of a team, the job with the highest priority runs
   * first.
   */
  priority?: number;
  /** What the records must be; percentages are texts such as `'98%'`. */
  expect?: {
    records?: { min?: number; max?: number; drop?: string; rise?: string; duplicates?: string };
    fields?: Record<string, ExpectedField>;
    /** A duration such as `'26h'`: the workflow is stale if no run has succeeded for this time. */
    fresh?: string;
    /** What happens if an expectation is not met (default: `refuse`). */
    otherwise?: 'refuse' | 'warn' | 'quarantine';
  };
  /**
   * `timeout`, such as `'15m'`, limits one attempt. `memory` limits all processes of a run together, and `output`
   * limits its output; both are sizes such as `'512MB'`.
   */
  limits?: { timeout?: string; memory?: string; output?: string; records?: number };
  /** `backoff` is a duration such as `'5s'`. */
  retries?: { max?: number; backoff?: string };
  /**
   * Keeps the newest `versions` (default: 10, maximum: 10,000), superseded at most `days` ago (default: 30, maximum:
   * 3,650). If only one of the two is set, the other one is its maximum.
   */
  keep?: { versions?: number; days?: number };
  /** `value` (default): 1.0 equals 1, and the order of fields does not matter. `text`: the JSON texts are compared. */
  compare?: 'value' | 'text';
}
