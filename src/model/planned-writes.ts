/**
 * Decides what a run writes for each record. Records are equal if they have the same JSON value; then the text that
 * was published first is kept. With `compare: text` in the definition, their texts must be the same.
 *
 * A run writes version N = current + 1. A row is visible at version V when `added_in <= V and (removed_in is null or
 * removed_in > V)`.
 *
 *     the id is                          the record is      write
 *     new                                –                  insert a row with a new `seq`
 *     present, older than N              equal              nothing
 *                                        different          close it in N, insert one (same `seq`)
 *     present, written by this run       equal              nothing
 *                                        as published       delete it and reopen the closed one
 *                                        different          rewrite it in place
 *     present, and the mode is `append`  –                  nothing
 */

import type { RecordCounts } from './job.ts';
import { MANY_RECORDS } from './quality/judge.ts';
import { sameJson } from './same-json.ts';
import type { Compare, Mode } from './workflow.ts';

/** A row whose id is in the batch, and which is current or was written by this run. */
export interface ComparedRecord {
  id: string;
  seq: number;
  /** The version that added the row; N (the version of this run) if this run wrote it. */
  addedIn: number;
  body: string;
  /** The published body that this run replaced with this row; null if there is none. */
  published: string | null;
}

/**
 * New records, as one text that the database reads itself. Copying a list of objects from thread to thread, and
 * inserting them one by one, took twice as long. Bodies as texts in the JSON text took a third longer, because
 * their quotes were escaped and unescaped.
 */
export interface Inserts {
  /** The ids, and the records: JSON texts of lists. */
  ids: string;
  records: string;
  count: number;
  /** The UTF-8 length of all bodies together, and of the longest one. */
  bytes: number;
  largest: number;
}

/** A change of a single stored record. `body` is the record's JSON text, which contains its id. */
export type StagedChange =
  | { kind: 'supersede'; id: string; seq: number; addedIn: number; body: string }
  | { kind: 'rewrite'; seq: number; body: string }
  | { kind: 'restore'; seq: number };

/** The writes of one batch. */
export interface StagedWrites {
  inserts: Inserts | null;
  changes: readonly StagedChange[];
}

/**
 * Decides what to write for one batch.
 *
 * @param input.version the version that the run writes
 * @param input.rows in the order of the records
 * @param input.records JSON texts of the records, by id
 * @returns the writes, and the `seq` of the records that do not change
 */
export function planWrites(input: {
  version: number;
  mode: Mode;
  /** Default: by value. */
  compare?: Compare | undefined;
  rows: readonly ComparedRecord[];
  records: ReadonlyMap<string, string>;
}): { writes: StagedWrites; kept: number[] } {
  const { version, mode, rows } = input;
  const isSame = input.compare === 'text' ? isSameText : isSameValue;
  const added: { id: string; body: string }[] = [];
  const changes: StagedChange[] = [];
  const kept: number[] = [];
  let handled = 0;
  for (const [id, body] of input.records) {
    const row = rows[handled];
    if (row?.id !== id) {
      added.push({ id, body });
      continue;
    }
    handled += 1;
    if (mode === 'append' || isSame(row.body, body)) kept.push(row.seq);
    else if (row.addedIn < version)
      changes.push({ kind: 'supersede', id, seq: row.seq, addedIn: row.addedIn, body });
    else if (isSame(row.published, body)) changes.push({ kind: 'restore', seq: row.seq });
    else changes.push({ kind: 'rewrite', seq: row.seq, body });
  }
  if (handled < rows.length) throw new Error('The rows are not in the order of the records');
  return { writes: { inserts: added.length === 0 ? null : insertsOf(added), changes }, kept };
}

/** @param records at least one */
export function insertsOf(records: readonly { id: string; body: string }[]): Inserts {
  const sizes = records.map(({ body }) => Buffer.byteLength(body));
  return {
    ids: JSON.stringify(records.map(({ id }) => id)),
    records: `[${records.map(({ body }) => body).join(',')}]`,
    count: records.length,
    bytes: sizes.reduce((sum, bytes) => sum + bytes, 0),
    largest: Math.max(...sizes),
  };
}

/** `stored` is '' if the store omitted the stored text, because it is too long to be equal to `body`. */
function isSameValue(stored: string | null, body: string): boolean {
  return stored !== null && stored !== '' && sameJson(stored, body);
}

function isSameText(stored: string | null, body: string): boolean {
  return stored === body;
}

/** A warning for the sender of a push that removed most records; undefined if no warning is needed. */
export function removalWarning({ total, added, removed }: RecordCounts): string | undefined {
  const before = total - added + removed;
  if (before < MANY_RECORDS || 2 * removed <= before) return undefined;
  return (
    `The push removed ${removed} of ${before} records, because it did not contain them. ` +
    'To add or change records and keep the others, push with `mode=upsert`'
  );
}

/** Limits of the field names that a version stores: the number of names, and their total length in characters. */
const MAX_FIELDS = 1_000;
const MAX_CHARACTERS = 65_536;

/** Merges two lists of names without duplicates, up to the limits. The names of `before` come first. */
export function mergeFields(before: readonly string[], names: readonly string[]): string[] {
  const fields = new Set<string>();
  let characters = 0;
  for (const name of [...before, ...names]) {
    if (fields.has(name)) continue;
    characters += name.length;
    if (fields.size === MAX_FIELDS || characters > MAX_CHARACTERS) break;
    fields.add(name);
  }
  return [...fields];
}
