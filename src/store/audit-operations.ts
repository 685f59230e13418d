/** What can happen to the audit: a part of the Store, see `store.ts` for what holds of all operations. */
import type { AuditLine, Author, Change } from '../model/audit.ts';

/** Which lines; times in epoch milliseconds, both included. */
export interface AuditFilter {
  /** Of whichever team, and of the instance, when it is left out. */
  teamId?: string;
  action?: string;
  /** The id of a key. */
  actorId?: string;
  /** The id of what was changed. */
  targetId?: string;
  since?: number;
  until?: number;
}

/** Most lines are written by the operations themselves: see `audited.ts`. */
export interface AuditOperations {
  /**
   * Writes a line of something that is more than one operation, or none. The author is the one whom the store works for
   * (`authoredBy`), or the service itself, unless it is told.
   */
  add(input: { change: Change; author?: Author }): Promise<void>;
  /**
   * The lines, newest first: a page, and the id to go on before, null when there is no more. A page may be short, or
   * empty, and have a next one all the same: of what is looked for by action, actor or target a bounded number is
   * looked through at once.
   */
  list(
    input: AuditFilter & { before?: string; limit: number },
  ): Promise<{ lines: AuditLine[]; next: string | null }>;
  /** Deletes lines that are older. At most `limit` a call, to be called until done. */
  prune(input: { olderMs: number; limit: number }): Promise<{ done: boolean }>;
}
