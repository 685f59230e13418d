/** The state of a run while it writes one batch, shared by `stage.ts` and `restore.ts`. */
import type { StagedWrite } from '../../model/staging.ts';

/** A run while it writes one batch: what it has written so far is counted here. */
export interface Run {
  teamId: string;
  workflowId: string;
  /** N, the version that is being written. */
  version: number;
  nextSeq: number;
  added: number;
  changed: number;
  /** By how many bytes the records have grown. */
  grown: number;
}

/** Rows that were written, and their bytes together. */
export interface Written {
  rows: number;
  bytes: number;
}

export type Write<Kind extends StagedWrite['kind']> = Extract<StagedWrite, { kind: Kind }>;

export function ofKind<Kind extends StagedWrite['kind']>(
  writes: readonly StagedWrite[],
  kind: Kind,
): Write<Kind>[] {
  return writes.filter((write): write is Write<Kind> => write.kind === kind);
}

export function notCompared(run: Run, record: string | number): Error {
  return new Error(
    `Record ${JSON.stringify(record)} of version ${run.version} is not what the run had compared. ` +
      'Nothing was published; run the job again, and report this if it comes back',
  );
}
