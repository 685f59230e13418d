/** Operations on records and versions: part of the Store; `store.ts` says what all operations have in common. */

import type { Held, RecordCounts } from '../model/job.ts';
import type { ComparedRecord, Guards, StagedWrite } from '../model/staging.ts';
import type { Mode } from '../model/workflow.ts';
import type { Page } from './page.ts';

/** What ingest must know of a batch before it can decide what to write. */
export interface Compared {
  /** The version under which the run writes: current + 1. */
  version: number;
  /** The rows of the batch's ids that are current or that this run has written. */
  rows: ComparedRecord[];
}

export type Published =
  | { outcome: 'published'; version: number; records: RecordCounts }
  | { outcome: 'unchanged'; version: number; records: RecordCounts }
  /** A guard or a quota refused; nothing was changed. `error` says which and why. */
  | { outcome: 'guarded'; error: string }
  /** The job had been canceled; it has ended so, and nothing was published. */
  | { outcome: 'canceled' };

/**
 * A record is stored as rows, each valid from version `added_in` until before version `removed_in`. A run writes under
 * the next version, which no reader sees until `publish` makes it the current one.
 */
export interface RecordOperations {
  /**
   * Undoes what earlier attempts wrote and did not publish, up to `limit` rows and some 1 MiB per call. Call until
   * `done`, before the first `stage` of an attempt.
   */
  sweep(input: { held: Held; limit: number }): Promise<{ done: boolean }>;
  /**
   * Looks up the ids of a batch (at most 500), after the previous batch has been staged. `sizes` are the UTF-8 lengths
   * of the incoming records, in the order of `ids`: a stored body that is much longer differs anyway and is returned as
   * '', so that 500 bodies of 1 MiB are never in memory. Without `sizes` every body is returned.
   */
  compare(input: { held: Held; ids: readonly string[]; sizes?: readonly number[] }): Promise<Compared>;
  /**
   * Writes one batch (at most 500 rows, 1 MiB) under the next version. Returns the `seq` of each write, in order.
   * Idempotent, so that it can be retried when the answer was lost. Rejects with an Error when a row is not what
   * `compare` returned. Takes several transactions if the rows that it supersedes are long.
   */
  stage(input: { held: Held; writes: readonly StagedWrite[] }): Promise<{ seqs: number[] }>;
  /**
   * Which of the `rows` numbers after `afterSeq` are the `seq` of a current record, in order. Used to find the records
   * that a run did not bring.
   */
  currentSeqs(input: {
    held: Held;
    afterSeq: number;
    rows: number;
  }): Promise<{ seqs: number[]; lastSeq: number; done: boolean }>;
  /**
   * Marks records of the current version (at most 500) as removed in the next one, except those that this run has
   * written. Takes several transactions if they are long.
   */
  remove(input: { held: Held; seqs: readonly number[] }): Promise<void>;
  /**
   * Ends a successful attempt: makes the next version current if anything changed, finishes the job, stores the
   * incremental state. The cost does not depend on how much the run has written. Events: `workflow_data_change` if
   * anything changed, then `workflow_finished`.
   *
   * `fields` are the field names of the run's records, in order of first appearance; with `upsert` and `append` they
   * are added to those of the previous version. `mode` is by default the definition's.
   */
  publish(input: {
    held: Held;
    guards: Guards;
    state: unknown;
    fields: readonly string[];
    mode?: Mode;
  }): Promise<Published>;
  /**
   * The current version, or the one of a `number` from `oldest` to the current one; undefined if it cannot be read or
   * the workflow is unknown.
   */
  version(input: {
    teamId: string;
    workflowId: string;
    number?: number | undefined;
  }): Promise<DataVersion | undefined>;
  /**
   * The versions that can be read, without version 0, newest first, those below `before` if it is given. Empty for an
   * unknown workflow.
   */
  versions(input: {
    teamId: string;
    workflowId: string;
    limit: number;
    before?: number;
  }): Promise<VersionSummary[]>;
  /**
   * One page of a version: the records whose `seq` is among the `rows` numbers after `afterSeq`, at most `limit` of
   * them, as JSON objects joined by `separator` (no record contains a line end), with `lead` before the first. A page
   * may be empty without being the last, which is `done`.
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
   * Records of a version whose JSON text contains `q`, ignoring the case of ASCII letters; `q` must be escaped as in
   * JSON. Scans `scan` numbers after `afterSeq`, or some 8 MiB, and returns at most `limit` records; `lastSeq` says how
   * far it came.
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
   * The net differences between two versions, each id at most once: a record that came and went in between, or is the
   * same again, is left out; one that was removed and came back is reported as changed. Added and changed records come
   * first, in the order in which they were written, then removed ones. Reads up to `limit` rows and some 8 MiB, so a
   * page may be empty without being the last, whose `next` is null. Both versions must be readable; the caller must
   * check that again afterwards.
   */
  changes(input: {
    teamId: string;
    workflowId: string;
    since: number;
    until: number;
    after: ChangesCursor | null;
    limit: number;
  }): Promise<{ rows: ChangedRow[]; next: ChangesCursor | null }>;
  /**
   * Looks at the next `limit` workflows of all teams, and returns those that have something for `prune` to do. `next` is
   * null after the last workflow.
   */
  prunable(
    input: Retention & Page<WorkflowPlace>,
  ): Promise<{ found: WorkflowPlace[]; next: WorkflowPlace | null }>;
  /**
   * Drops the versions that `Retention` does not keep: moves `oldest`, then deletes the rows that only they had, at
   * most `limit` rows and some 1 MiB per call. Call until `done`.
   */
  prune(input: Retention & { teamId: string; workflowId: string; limit: number }): Promise<{ done: boolean }>;
}

export interface WorkflowPlace {
  teamId: string;
  workflowId: string;
}

/** Which versions are kept besides the current one: those that pass both limits, and any within `graceMs`. */
export interface Retention {
  /** At most this many, the current one included. */
  keepVersions: number;
  /** None that was superseded longer ago than this. */
  keepMs: number;
  /** All that were superseded less than this ago, whatever the other two say. */
  graceMs: number;
}

export interface VersionSummary {
  number: number;
  jobId: string;
  publishedAt: number;
  records: RecordCounts;
}

/** Where the next page of changes begins. */
export interface ChangesCursor {
  part: 'written' | 'removed';
  version: number;
  seq: number;
}

export interface ChangedRow {
  id: string;
  /** The version that last wrote it, or that removed it. */
  version: number;
  /** JSON text at `since`; null when it did not exist. */
  before: string | null;
  /** JSON text at `until`; null when it is gone. */
  after: string | null;
}

export interface DataVersion {
  /** 0 before the first published run. */
  number: number;
  oldest: number;
  /** How many records it holds. */
  total: number;
  /** An upper bound of the byte length of its longest record. */
  largest: number;
  /** How often records were erased from the workflow: together with `number` it identifies the content. */
  erasures: number;
  /** The field names of its records, possibly more; in order of first appearance. */
  fields: string[];
}

export interface RecordPage {
  /** UTF-8. */
  json: Uint8Array;
  count: number;
  /** Pass as `afterSeq` for the next page. */
  lastSeq: number;
  /** Whether this was the last page. */
  done: boolean;
}
