/** What can happen to records and versions: a part of the Store, see `store.ts` for what holds of all operations. */
import type { Held, RecordCounts } from '../model/job.ts';
import type { ComparedRecord, StagedWrite } from '../model/staging.ts';
import type { Definition, Mode } from '../model/workflow.ts';

/** What ingest must know of the ids of a batch before it can say what a run has to write. */
export interface Compared {
  /** The version under which the run writes: current + 1. */
  version: number;
  /** The rows of those ids that are current or that this run has written. */
  rows: ComparedRecord[];
}

export type Published =
  | { outcome: 'published'; version: number; records: RecordCounts }
  | { outcome: 'unchanged'; version: number; records: RecordCounts }
  /** A guard refused; nothing was changed. `error` says which and why. */
  | { outcome: 'guarded'; error: string }
  /** Somebody had canceled the job: it has ended as that, and nothing was published. */
  | { outcome: 'canceled' };

/** Records are rows that know since when and until when: DESIGN section 7. */
export interface RecordOperations {
  /**
   * Removes what earlier attempts wrote without publishing, up to `limit` rows and some 1 MiB a call; answers
   * whether nothing is left. To be called until it does, before the first `stage` of an attempt.
   */
  sweep(input: { held: Held; limit: number }): Promise<{ done: boolean }>;
  /**
   * Looks up the ids of a batch (at most 500), once the batch before it has been staged. `sizes` are the UTF-8
   * lengths of the records that came, in the order of `ids`: a stored body of another length differs anyway and
   * is answered as '', so that 500 bodies of 1 MiB are never in memory. Without them every body is answered.
   */
  compare(input: { held: Held; ids: readonly string[]; sizes?: readonly number[] }): Promise<Compared>;
  /**
   * Writes one batch (at most 500 rows, 1 MiB) under the next version, unseen by readers. Answers the `seq` of
   * each write, in order. Asked for once more it changes nothing, so that it may be tried again when the answer
   * was lost; rejects with an Error when a row is not what was compared. Takes several transactions where the
   * rows that it closes are long.
   */
  stage(input: { held: Held; writes: readonly StagedWrite[] }): Promise<{ seqs: number[] }>;
  /**
   * Which of the `rows` numbers after `afterSeq` are the `seq` of a record of the current state, in order: to find
   * what a run has not seen.
   */
  currentSeqs(input: {
    held: Held;
    afterSeq: number;
    rows: number;
  }): Promise<{ seqs: number[]; lastSeq: number; done: boolean }>;
  /**
   * Marks records of the current version (at most 500) as removed in the next. Those that this run has written
   * are left alone. Takes several transactions where they are long.
   */
  remove(input: { held: Held; seqs: readonly number[] }): Promise<void>;
  /**
   * Ends the attempt: moves the workflow's current version if anything changed, finishes the job, stores the
   * incremental state. Events: `workflow_data_change` if anything changed, then `workflow_finished`. Costs the
   * same however much the run has written.
   *
   * `fields` are the names that the run's records have, in order of first appearance; with `upsert` and `append`
   * they are added to those of the version before. `mode` is the run's: the definition's unless it is given.
   */
  publish(input: {
    held: Held;
    guards: Definition['guards'];
    state: unknown;
    fields: readonly string[];
    mode?: Mode;
  }): Promise<Published>;
  /** The version that readers see, or nothing for an unknown workflow. */
  version(input: { teamId: string; workflowId: string }): Promise<DataVersion | undefined>;
  /** One version from `oldest` to the current one; nothing when it cannot be read, or the workflow is unknown. */
  versionAt(input: { teamId: string; workflowId: string; version: number }): Promise<DataVersion | undefined>;
  /**
   * The versions that can be read, newest first, those below `before` if it is given; without version 0. Empty for
   * an unknown workflow.
   */
  versions(input: {
    teamId: string;
    workflowId: string;
    limit: number;
    before?: number;
  }): Promise<VersionSummary[]>;
  /**
   * One page of a version: the records whose `seq` is among the `rows` numbers after `afterSeq`, at most `limit` of
   * them, as JSON objects joined by commas, or by line ends, which stand in no record, with `lead` before the first.
   * May be empty and yet not the last: that one is `done`.
   */
  page(input: {
    teamId: string;
    workflowId: string;
    version: number;
    afterSeq: number;
    rows: number;
    limit?: number;
    separator?: ',' | '\n';
    lead?: string;
  }): Promise<RecordPage>;
  /**
   * Records of a version whose JSON text contains `q` (letters of ASCII without regard to case; what JSON escapes
   * must be escaped in `q`). Looks at `scan` numbers after `afterSeq`, or some 8 MiB, and answers at most `limit`;
   * `lastSeq` says how far it came, `count` how many it found.
   */
  search(input: {
    teamId: string;
    workflowId: string;
    version: number;
    q: string;
    afterSeq: number;
    scan: number;
    limit: number;
    separator?: ',' | '\n';
  }): Promise<RecordPage>;
  /**
   * What became of records between two versions, net, each id at most once: one that came and went in between is
   * not told, one that is as it was neither, and one that was removed and returned is told as changed. First
   * those added and changed, in the order in which they were written; then those removed. Looks at no more than
   * `limit` rows and some 8 MiB, so that an answer may be empty and yet not be the last: that has `next` null.
   * Both versions must be readable, which the caller must look at once more after the answer.
   */
  changes(input: {
    teamId: string;
    workflowId: string;
    since: number;
    until: number;
    after: ChangesCursor | null;
    limit: number;
  }): Promise<{ rows: ChangedRow[]; next: ChangesCursor | null }>;
  /** Workflows for which `prune` has something to do. */
  prunable(input: Retention & { limit: number }): Promise<{ teamId: string; workflowId: string }[]>;
  /**
   * Gives up versions that `Retention` does not keep: moves `oldest`, then deletes the rows that only they had, at
   * most `limit` rows and some 1 MiB a call. To be called until done.
   */
  prune(input: Retention & { teamId: string; workflowId: string; limit: number }): Promise<{ done: boolean }>;
}

/** Which versions are kept besides the current one. */
export interface Retention {
  /** The newest so many, the current one included. */
  keepVersions: number;
  /** None that has not been current for so long. */
  keepMs: number;
  /** All that were current less than so long ago, whatever the others say. */
  graceMs: number;
}

export interface VersionSummary {
  number: number;
  jobId: string;
  publishedAt: number;
  records: RecordCounts;
}

/** Where a reading of changes goes on. */
export interface ChangesCursor {
  part: 'written' | 'removed';
  version: number;
  seq: number;
}

export interface ChangedRow {
  id: string;
  /** The version that brought its last state, or that removed it. */
  version: number;
  /** JSON text at `since`; null when it was not there. */
  before: string | null;
  /** JSON text at `until`; null when it is no longer there. */
  after: string | null;
}

export interface DataVersion {
  /** 0 before the first published run. */
  number: number;
  oldest: number;
  /** How many records it holds. */
  total: number;
  /** The byte length of its longest record, or more. */
  largest: number;
  /** How often records were erased from the workflow: with `number` it names the content for good. */
  erasures: number;
  /** The names of the fields that its records have, or more; in order of first appearance. */
  fields: string[];
}

export interface RecordPage {
  /** UTF-8. */
  json: Uint8Array;
  count: number;
  /** Where the next page goes on. */
  lastSeq: number;
  /** Whether nothing follows. */
  done: boolean;
}
