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
import type { RecordCounts } from './job.ts';
import { sameJson } from './same-json.ts';
import type { Definition, Mode } from './workflow.ts';

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

/** The guards of one publish. */
export type Guards = Definition['guards'] & {
  /** Refuses a push that removes nearly everything, where the workflow has no `maxDropPercent` of its own. */
  guardsPush?: boolean;
};

/** What a push without a `maxDropPercent` may not exceed: nine of ten records are gone when a file was cut off. */
export const PUSH_DROP_PERCENT = 90;
/** Of fewer records neither that guard nor the warning speaks: small sets are often replaced as a whole. */
export const MANY_RECORDS = 20;

/** Why the guards refuse to publish, as a sentence; undefined when they do not. `before` and `after` are totals. */
export function guardMistake(input: { guards: Guards; before: number; after: number }): string | undefined {
  const { before, after } = input;
  const { minRecords, maxDropPercent, guardsPush = false } = input.guards;
  if (after < minRecords) {
    return (
      `The guard minRecords refused to publish: ${after} records are fewer than the ${minRecords} that it asks for. ` +
      'The published records stay as they are. Look at what the source returned, or lower guards.minRecords'
    );
  }
  const dropPercent = before === 0 ? 0 : ((before - after) * 100) / before;
  if (maxDropPercent !== null && dropPercent > maxDropPercent) {
    return (
      `The guard maxDropPercent refused to publish: the records would fall from ${before} to ${after}, by ` +
      `${Number(dropPercent.toFixed(1))} %, and it allows ${maxDropPercent} %. The published records stay as they ` +
      'are. Look at what the source returned, or raise guards.maxDropPercent'
    );
  }
  if (maxDropPercent === null && guardsPush && before >= MANY_RECORDS && dropPercent > PUSH_DROP_PERCENT) {
    return (
      `The guard maxDropPercent refused to publish: the push has ${after} of ${before} records, and with the mode ` +
      '`replace` all others would be removed. Push with `mode=upsert` to keep them, or with `allowDrop=true` to remove ' +
      `them; \`guards.maxDropPercent\` in the workflow takes the place of this default (${PUSH_DROP_PERCENT})`
    );
  }
  return undefined;
}

/** What whoever pushed should know of the records that this removed; undefined when these were few. */
export function removalWarning({ total, added, removed }: RecordCounts): string | undefined {
  const before = total - added + removed;
  if (before < MANY_RECORDS || 2 * removed <= before) return undefined;
  return (
    `The push removed ${removed} of ${before} records, because they were not in it. ` +
    'To add or change records and keep the others, push with `mode=upsert`'
  );
}

/** At most so many names, and so many characters in them, are kept: every version has a list. */
const MAX_FIELDS = 1_000;
const MAX_CHARACTERS = 65_536;

/** Both lists without duplicates, the names of `before` first; cut at the bounds. */
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
