/**
 * The types for authors of module workflows, imported as `flowhook/workflow`: what a module is called with, what it
 * yields, and its settings. They do not exist at run time, so import them with `import type`.
 */

/** One record: a plain object that can be written as JSON, with an `id` unless the workflow names a `key`. */
export type Rec = Record<string, unknown>;

/** The argument of a module's default export: `export default async function* (ctx: Context) { … }`. */
export interface Context {
  /** The state that the last published run left. What this run sets is kept only if it publishes. */
  readonly state: {
    get(key: string): unknown;
    /** Sets a JSON value; `undefined` removes the key. The whole state may have at most 1 MiB. */
    set(key: string, value: unknown): void;
  };
  /** A secret of the team. Throws an error that says how to set it if it is missing. */
  secret(name: string): string;
  /** Writes to the log of this run, as `console.*` does. */
  readonly log: {
    debug(message: string, fields?: object): void;
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
    error(message: string, fields?: object): void;
  };
  /**
   * Reports progress: pages read so far, and a short message. Omitted properties keep their value. Call it as often as
   * you like; it is shown a few times a second.
   */
  progress(said: { pages?: number; message?: string }): void;
  /**
   * Aborted when the run must stop: timeout, cancel, shutdown. A module that reads this property gets 10 s to clean up;
   * any other is ended at once.
   */
  readonly signal: AbortSignal;
  /**
   * The global `fetch` with limits: it connects only to addresses that FLOWHOOK_ALLOW_NETWORKS allows, sends Flowhook as
   * its user agent unless you set another, has at most 4 requests to one host waiting for a response, and is aborted
   * with `signal`. After 429 or 503 with `Retry-After` it waits (at most 2 minutes) and tries again, at most 5 times. A
   * request whose body is a stream cannot be repeated: you get that response.
   */
  readonly fetch: typeof globalThis.fetch;
}

/** The optional `export const workflow: Workflow = { … }`: the settings of a YAML file, without `source`. */
export interface Workflow {
  name?: string;
  /** Fields whose values make the record's id; without it, records bring their own `id`. */
  key?: string[];
  mode?: 'replace' | 'upsert' | 'append';
  /** What an invalid record does: `fail` ends the run, `skip` leaves the record out. */
  onInvalid?: 'fail' | 'skip';
  overlap?: 'reject' | 'buffer';
  /** Cron, such as `'0 6 * * 1-5'` (in UTC unless a `timezone` is named), or `every` so often, such as `'15m'`. */
  schedule?:
    | string
    | { cron: string; timezone?: string; missed?: 'run' | 'skip' }
    | { every: string; missed?: 'run' | 'skip' };
  /** From -100 to 100. Of the waiting jobs of a team, the one with the highest priority runs first. */
  priority?: number;
  guards?: { minRecords?: number; maxDropPercent?: number | null };
  /** `timeout`, such as `'15m'`, is for one attempt; `memory` (of all processes) and `output` are sizes such as `'512MB'`. */
  limits?: { timeout?: string; memory?: string; output?: string; records?: number };
  /** `backoff` such as `'5s'`. */
  retries?: { max?: number; backoff?: string };
}
