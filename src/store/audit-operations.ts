/** Operations on the audit log: part of the Store; `store.ts` says what all operations have in common. */
import type { AuditLine, Author, Change } from '../model/audit.ts';

/** Selects audit lines; times in epoch milliseconds, both inclusive. */
export interface AuditFilter {
  /** Without it, lines of all teams and of the instance. */
  teamId?: string;
  action?: string;
  /** The id of a key. */
  actorId?: string;
  /** The id of what was changed. */
  targetId?: string;
  since?: number;
  until?: number;
}

/** Most lines are written along with other operations: see `audited.ts`. */
export interface AuditOperations {
  /**
   * Writes a line about something that is not exactly one operation. The author is by default the one of the store
   * (`authoredBy`), else the service itself.
   */
  add(input: { change: Change; author?: Author }): Promise<void>;
  /**
   * A page of lines, newest first; pass `next` as `before` for the following one, null after the last. A page may be
   * short or even empty and not be the last: filtering by action, actor or target scans a bounded number of lines per
   * call.
   */
  list(
    input: AuditFilter & { before?: string; limit: number },
  ): Promise<{ lines: AuditLine[]; next: string | null }>;
  /** Deletes lines older than `olderMs`. At most `limit` per call; call until `done`. */
  prune(input: { olderMs: number; limit: number }): Promise<{ done: boolean }>;
}
