/** Finding and erasing a person: a part of the Store, see `store.ts` for what holds of all operations. */

/**
 * Places beside the records where the content of records may stand: bodies of events, what receivers answered and
 * the headers of that, why attempts and jobs failed and webhooks were paused, what runs wrote to their logs and said
 * of their progress, what a run left for the next one, the names of a version's fields; what
 * inspectors were sent.
 */
export type TextPlace =
  | 'event'
  | 'response'
  | 'attemptDetails'
  | 'attemptError'
  | 'pausedReason'
  | 'jobError'
  | 'jobLog'
  | 'jobProgress'
  | 'state'
  | 'fields'
  | 'inspectedRequest'
  | 'inspectedBody';

/** One text of such a place. `key` finds it again; `about` is the event that a response or an error answers. */
export interface HeldText {
  key: string;
  workflowId: string | null;
  text: string;
  about: string | null;
}

/** One row of a record: the state that it had from version `addedIn` until before `removedIn`. */
export interface RecordRow {
  id: string;
  seq: number;
  addedIn: number;
  removedIn: number | null;
  body: string;
}

/** What keeps a person out of later runs. `workflowId` '' stands for every workflow of the team. */
export interface SuppressionRow {
  workflowId: string;
  kind: 'email' | 'id';
  hash: string;
}

/** How the disk was scrubbed. */
export interface Scrubbed {
  /** Whether the write-ahead log holds nothing any more; null: PostgreSQL's is out of reach, as are its replicas. */
  logEmptied: boolean | null;
  rewritten: boolean;
  /** Whether traces are left in the bytes of the database; null: nobody can look at PostgreSQL's from here. */
  tracesLeft: boolean | null;
}

/** Finding and erasing a person, in steps that are short for everybody else: see `records/erase.ts`. */
export interface ErasureOperations {
  /** Every workflow of a team, the archived ones too, with its definition as JSON text. */
  workflows(input: { teamId: string }): Promise<{ id: string; definition: string }[]>;
  /**
   * Looks at some rows of a workflow after a place and answers those whose text contains one of `needles`
   * (ASCII in lower case) or whose id is one of `ids`, whatever their version. `next` is null at the end.
   */
  scanRecords(input: {
    teamId: string;
    workflowId: string;
    needles: readonly string[];
    ids: readonly string[];
    after: string | null;
  }): Promise<{ rows: RecordRow[]; next: string | null }>;
  /** Looks at some texts of a place after a key, likewise; also those whose `about` contains a needle. */
  scanTexts(input: {
    teamId: string;
    workflowId: string | null;
    place: TextPlace;
    needles: readonly string[];
    after: string | null;
  }): Promise<{ texts: HeldText[]; next: string | null }>;
  /** Replaces texts that are still what they were. Answers how many. */
  rewrite(input: {
    teamId: string;
    place: TextPlace;
    texts: readonly { key: string; was: string; text: string }[];
  }): Promise<number>;
  /**
   * Removes records (at most 100) from every version, as if they had never been: totals stay true, `erasures`
   * grows. A run of the workflow that is under way starts over; a push fails. Answers the rows that it removed.
   */
  remove(input: { teamId: string; workflowId: string; seqs: readonly number[] }): Promise<number>;
  /** Keeps a person out of runs from now on; runs under way start over. Twice is harmless. */
  suppress(input: { teamId: string; entries: readonly SuppressionRow[] }): Promise<void>;
  /** What keeps people out of a workflow. */
  suppressed(input: { teamId: string; workflowId: string }): Promise<SuppressionRow[]>;
  /**
   * Brings what was erased off the disk: empties the write-ahead log, looks for `traces` in the bytes of the
   * database, and rewrites it when there are some and it is not larger than `rewriteBytes`.
   */
  scrub(input: { traces: readonly string[]; rewriteBytes: number }): Promise<Scrubbed>;
}
