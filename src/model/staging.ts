/**
 * What a run has to write for each record, as a pure decision. Records are equal if they have the same value, however
 * that is written; then the text that was published first stays.
 *
 * A run writes under version N = current + 1, and a row is visible at version V when
 * `added_in <= V and (removed_in is null or removed_in > V)`.
 *
 *     the id is                          the record is      then
 *     not there                          –                  insert a row with a new `seq`
 *     there, older than N                equal              nothing
 *                                        different          close it in N, add one (same `seq`)
 *     there, written by this run         equal              nothing
 *                                        as published       delete it and reopen the closed one
 *                                        different          rewrite it in place
 *     there, and the mode is `append`    –                  nothing
 */
import { sameJson } from './same-json.ts';
import type { Mode } from './workflow.ts';

/** A row of one of the batch's ids, that is current or that this run has written. */
export interface ComparedRecord {
  id: string;
  seq: number;
  /** Equal to N when this run has written it. */
  addedIn: number;
  body: string;
  /** The body that this run has closed for it, if it replaced one. */
  published: string | null;
}

/** One row to write. `body` is the record's JSON text, which contains its id. */
export type StagedWrite =
  | { kind: 'insert'; id: string; body: string }
  | { kind: 'supersede'; id: string; seq: number; addedIn: number; body: string }
  | { kind: 'rewrite'; seq: number; body: string }
  | { kind: 'restore'; seq: number };

/**
 * Decides for one batch.
 *
 * @param input.version N
 * @param input.records JSON text by id: within a batch an id stands once
 * @returns what to write, and the `seq` of the records that stay as they are
 */
export function planWrites(input: {
  version: number;
  mode: Mode;
  rows: readonly ComparedRecord[];
  records: ReadonlyMap<string, string>;
}): { writes: StagedWrite[]; kept: number[] } {
  const rows = new Map(input.rows.map((row) => [row.id, row]));
  const writes: StagedWrite[] = [];
  const kept: number[] = [];
  for (const [id, body] of input.records) {
    const row = rows.get(id);
    if (row === undefined) writes.push({ kind: 'insert', id, body });
    else if (input.mode === 'append' || isSame(row.body, body)) kept.push(row.seq);
    else if (row.addedIn < input.version)
      writes.push({ kind: 'supersede', id, seq: row.seq, addedIn: row.addedIn, body });
    else if (isSame(row.published, body)) writes.push({ kind: 'restore', seq: row.seq });
    else writes.push({ kind: 'rewrite', seq: row.seq, body });
  }
  return { writes, kept };
}

/** `compare` returns '' for a text that is too long to be equal. */
function isSame(stored: string | null, body: string): boolean {
  return stored !== null && stored !== '' && sameJson(stored, body);
}
