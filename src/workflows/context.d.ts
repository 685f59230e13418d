/**
 * The types for authors of module workflows: what a module is called with, what it yields, and its settings.
 * They are the whole of `flowhook/workflow`; nothing of it exists at run time, so import it with `import type`.
 */

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
  /**
   * Says how far the run has come: pages read so far, and a few words. What is left out stays as it was. Call it as
   * often as you like; it is shown a few times a second.
   */
  progress(said: { pages?: number; message?: string }): void;
  /**
   * Aborted when the run must stop: timeout, cancel, shutdown. A module that asks for it gets 10 s to clean up;
   * one that never does is ended at once.
   */
  readonly signal: AbortSignal;
  /**
   * The global `fetch`, guarded and polite: it connects only to addresses that FLOWHOOK_ALLOW_NETWORKS allows, names
   * Flowhook as its user agent unless you name another, has at most 4 requests waiting for an answer of one host,
   * ends with `signal`, and where a host answers 429 or 503 with `Retry-After`, it waits (at most 2 minutes) and asks
   * again, at most 5 times. Bodies that are streams cannot be sent again: those answers are yours.
   */
  readonly fetch: typeof globalThis.fetch;
}

/** The optional `export const workflow: Workflow = { … }`: the settings of a YAML file, without `source`. */
export interface Workflow {
  name?: string;
  /** Fields whose values make the record's id; without it, records bring their own `id`. */
  key?: string[];
  mode?: 'replace' | 'upsert' | 'append';
  /** What a record that cannot be taken does: end the run, or be left out. */
  onInvalid?: 'fail' | 'skip';
  overlap?: 'reject' | 'buffer';
  /** Cron, such as `'0 6 * * 1-5'` (in UTC unless a `timezone` is named), or `every` so often, such as `'15m'`. */
  schedule?:
    | string
    | { cron: string; timezone?: string; missed?: 'run' | 'skip' }
    | { every: string; missed?: 'run' | 'skip' };
  /** From -100 to 100: among the waiting jobs of its team the highest goes first. */
  priority?: number;
  guards?: { minRecords?: number; maxDropPercent?: number | null };
  /** `timeout` such as `'15m'`, for one attempt; `memory` (of all its processes) and `output` such as `'512MB'`. */
  limits?: { timeout?: string; memory?: string; output?: string; records?: number };
  /** `backoff` such as `'5s'`. */
  retries?: { max?: number; backoff?: string };
}
