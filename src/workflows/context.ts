/** The types for authors of module workflows: what a module is called with and what it may yield. */

/** One record: a plain object that can be written as JSON, with an `id` unless the workflow names a `key`. */
export type Rec = Record<string, unknown>;

/** What the default export of a module is called with: `export default async function* (ctx: Context) { … }`. */
export interface Context {
  /** What the last published run left; what this run sets is kept only if it publishes. */
  readonly state: {
    get(key: string): unknown;
    /** Takes anything that JSON can hold; `undefined` forgets the key. All of it together: at most 1 MiB. */
    set(key: string, value: unknown): void;
  };
  /** A secret of the team. Throws when it is not set, and says how to set it. */
  secret(name: string): string;
  /** Lines for the log of this run. `console.*` goes there too. */
  readonly log: {
    debug(message: string, fields?: object): void;
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
    error(message: string, fields?: object): void;
  };
  /** Says how far the run has come, for example `{ pages: 12 }`. */
  progress(fields: object): void;
  /**
   * Aborted when the run must stop: timeout, cancel, shutdown. A module that asks for it gets 10 s to clean up;
   * one that never does is ended at once.
   */
  readonly signal: AbortSignal;
  /** The global `fetch`, for now without the address guard and the politeness that it will have. */
  readonly fetch: typeof globalThis.fetch;
}

/** The optional `export const workflow: WorkflowSettings = { … }`: the settings of a YAML file, without `source`. */
export interface WorkflowSettings {
  name?: string;
  /** Fields whose values make the record's id; without it, records bring their own `id`. */
  key?: string[];
  mode?: 'replace' | 'upsert' | 'append';
  overlap?: 'reject' | 'buffer';
  guards?: { minRecords?: number; maxDropPercent?: number | null };
  /** `timeout` such as `'15m'`. */
  limits?: { timeout?: string; records?: number };
  /** `backoff` such as `'5s'`. */
  retries?: { max?: number; backoff?: string };
}
