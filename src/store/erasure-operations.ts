/** Finding and erasing a person: part of the Store; `store.ts` says what all operations have in common. */

import type { Page } from './page.ts';

/** The text columns, besides the records themselves, that may hold content of records. */
export type TextPlace =
  | 'event'
  /** A receiver's response body; `attemptDetails` has its headers. */
  | 'response'
  | 'attemptDetails'
  | 'attemptError'
  /** Why a webhook was paused. */
  | 'pausedReason'
  | 'jobError'
  | 'jobLog'
  | 'jobProgress'
  /** The incremental state that a run stored for the next one. */
  | 'state'
  /** The field names of a version. */
  | 'fields'
  | 'inspectedRequest'
  | 'inspectedBody';

/**
 * One text in such a column. `key` identifies its row; `about` is the event body that a response or error belongs
 * to.
 */
export interface HeldText {
  key: string;
  workflowId: string | null;
  text: string;
  about: string | null;
}

/** One stored state of a record: valid from version `addedIn` until before `removedIn`. */
export interface RecordRow {
  id: string;
  seq: number;
  addedIn: number;
  removedIn: number | null;
  body: string;
}

/** Keeps a person out of later runs. `workflowId` '' stands for every workflow of the team. */
export interface SuppressionRow {
  workflowId: string;
  kind: 'email' | 'id';
  hash: string;
}

/** The result of scrubbing the disk. */
export interface Scrubbed {
  /** Whether the write-ahead log was emptied; null on PostgreSQL, whose log and replicas are out of reach. */
  logEmptied: boolean | null;
  /** Whether the database file was rewritten. */
  rewritten: boolean;
  /** Whether traces are left in the bytes of the database; null on PostgreSQL, whose files are out of reach. */
  tracesLeft: boolean | null;
}

/** The steps of finding and erasing a person, each short so that nobody else has to wait: see `records/erase.ts`. */
export interface ErasureOperations {
  /** A page of a team's workflows, by id, archived ones included, with their definitions as JSON text. */
  workflows(input: { teamId: string } & Page): Promise<{ id: string; definition: string }[]>;
  /**
   * Scans some rows of a workflow, of any version, after the cursor `after`, and returns those whose text contains one
   * of `needles` (ASCII in lower case) or whose id is one of `ids`. `next` is null at the end.
   */
  scanRecords(input: {
    teamId: string;
    workflowId: string;
    needles: readonly string[];
    ids: readonly string[];
    after: string | null;
  }): Promise<{ rows: RecordRow[]; next: string | null }>;
  /** Likewise scans some texts of a place; also returns those whose `about` contains a needle. */
  scanTexts(input: {
    teamId: string;
    workflowId: string | null;
    place: TextPlace;
    needles: readonly string[];
    after: string | null;
  }): Promise<{ texts: HeldText[]; next: string | null }>;
  /** Replaces each text that still equals `was`. Returns how many. */
  rewrite(input: {
    teamId: string;
    place: TextPlace;
    texts: readonly { key: string; was: string; text: string }[];
  }): Promise<number>;
  /**
   * Removes records (at most 100) from every version, as if they had never existed: totals are corrected, `erasures`
   * grows. A run of the workflow under way starts over, a push fails. Returns how many rows it removed.
   */
  remove(input: { teamId: string; workflowId: string; seqs: readonly number[] }): Promise<number>;
  /** Keeps a person out of runs from now on; runs under way start over. Repeating it is harmless. */
  suppress(input: { teamId: string; entries: readonly SuppressionRow[] }): Promise<void>;
  /** A page of the entries for a workflow, or of those for every one (''), by kind and hash. */
  suppressed(
    input: { teamId: string; workflowId: string } & Page<Pick<SuppressionRow, 'kind' | 'hash'>>,
  ): Promise<SuppressionRow[]>;
  /**
   * Removes what was erased from the disk as well: empties the write-ahead log, searches the bytes of the database for
   * `traces`, and rewrites it if it finds any and the database is not larger than `rewriteBytes`.
   */
  scrub(input: { traces: readonly string[]; rewriteBytes: number }): Promise<Scrubbed>;
}
