/** The changes of a workflow's records between two versions, as JSON objects or as lines of CSV. */

import { Problem } from '../model/error.ts';
import { CHANGE_TYPES, type Difference, differenceOf } from '../model/same-json.ts';
import type { WorkflowRef } from '../model/workflow.ts';
import { toIso } from '../std/clock.ts';
import { ownTurn } from '../std/fair-share.ts';
import type { ChangedRow, ChangesCursor } from '../store/operations/history/changes.ts';
import type { DataVersion } from '../store/operations/versions.ts';
import type { Store } from '../store/store.ts';
import { csvLine, textOf } from './formats.ts';
import { checkStillThere, openVersion, PAGE_ROWS, PARSED_ROWS, pageRows } from './read.ts';

/** Maximum number of characters that are compared in one turn of the event loop, which takes a few milliseconds. */
export const COMPARED_CHARACTERS = 65_536;

/** A range of versions. `since` 0 means that the range starts before the first version. */
export interface Span {
  since: number;
  until: DataVersion;
}

/** A version, or the newest version that was published at or before a time in epoch milliseconds. */
export type Moment = { version: number } | { atMs: number };

/** Which changes to list. */
export interface Wanted {
  types: readonly Difference['type'][];
  /** Only changes of these fields, and of no other fields of the same records; null for all. */
  fields: ReadonlySet<string> | null;
  /** Selects rows (default: all). */
  matching?: (rows: readonly ChangedRow[]) => Promise<readonly ChangedRow[]>;
}

const ALL_CHANGES: Wanted = { types: CHANGE_TYPES, fields: null };

export const CHANGES_FORMATS = ['json', 'ndjson', 'csv'] as const;
export type ChangesFormat = (typeof CHANGES_FORMATS)[number];

/**
 * Resolves the requested range of versions.
 *
 * @throws Problem `workflow_not_found`; `version_not_found` if a version was never published, or `until` was pruned;
 *   `version_pruned` if `since` was pruned, or a time is before the oldest version; `field_invalid` if `until` precedes
 *   `since`
 */
export async function openSpan(
  store: Store,
  place: WorkflowRef,
  asked: { since: Moment; until: Moment | undefined },
): Promise<Span> {
  const newest = await openVersion(store, place);
  const since = await numberOf(store, place, newest, asked.since);
  const last = asked.until && (await numberOf(store, place, newest, asked.until));
  if (since > newest.number) {
    throw new Problem('version_not_found', {
      sentence: `No such version: ${since} was never published, the newest is ${newest.number}. If a backup was restored, read all records again`,
    });
  }
  if (since !== 0 && since < newest.oldest) throw await pruned(store, place, newest.oldest);
  if (last !== undefined && last < since) {
    throw new Problem('field_invalid', {
      sentence: 'The query parameter `until` must not be before `since`',
    });
  }
  const until =
    last === 0
      ? { ...newest, number: 0, total: 0 }
      : await openVersion(store, place, last, 'Omit `until` to read up to the newest version');
  return { since, until };
}

async function numberOf(
  store: Store,
  place: WorkflowRef,
  newest: DataVersion,
  moment: Moment,
): Promise<number> {
  if ('version' in moment) return moment.version;
  const found = await store.records.versionAt({ ...place, at: moment.atMs });
  // Another version may have been published since `newest` was read, or pruned.
  if (found !== null) return Math.min(found, newest.number);
  const { oldest } = await openVersion(store, place);
  if (oldest > 1) throw await pruned(store, place, oldest);
  // Without a pruned version, there were no records at an earlier time.
  return 0;
}

async function pruned(store: Store, place: WorkflowRef, oldest: number): Promise<Problem> {
  const [version] = await store.records.versions({ ...place, limit: 1, before: oldest + 1 });
  const since = version === undefined ? '' : `, published at ${toIso(version.publishedAt)}`;
  return new Problem('version_pruned', {
    sentence:
      `This version has been pruned: the oldest one that is stored is ${oldest}${since}. Ask for changes since then, ` +
      'or read all records again. `keep` in the definition sets how long versions are stored',
  });
}

/**
 * Yields the bytes of a body with all changes, as a JSON array or as NDJSON: `{ type, id, version, record }` (added)
 * or `{ type, id, version, fields }` (changed, removed), where `fields` is `[{ key, value, previousValue }]`. CSV has a
 * line for each field.
 *
 * @throws VersionGoneError if `since` was pruned or records were erased in the meantime: the connection must then be
 *   aborted
 */
export async function* readChanges(
  store: Store,
  place: WorkflowRef,
  { since, until }: Span,
  format: ChangesFormat,
  wanted: Wanted = ALL_CHANGES,
): AsyncGenerator<Uint8Array> {
  const { head, between, end, tail } = FRAMES[format];
  const oldest = { number: since === 0 ? until.number : since, erasures: until.erasures };
  const { types, matching = async (rows: readonly ChangedRow[]) => rows } = wanted;
  const isWanted = (part: ChangesCursor['part']) =>
    types.some((type) => (type === 'removed') === (part === 'removed'));
  let before = head;
  let after: ChangesCursor | null = isWanted('written')
    ? null
    : { part: 'removed', version: since + 1, seq: 0 };
  do {
    if (since === until.number) break;
    const page: Awaited<ReturnType<Store['records']['changes']>> = await store.records.changes({
      ...place,
      since,
      until: until.number,
      after,
      // The time for the filter is limited per page.
      limit: pageRows(until, wanted.matching === undefined ? PAGE_ROWS : PARSED_ROWS),
    });
    await checkStillThere(store, place, oldest);
    await ownTurn(place.teamId);
    const rows = page.rows.filter((row) => types.includes(typeOf(row)));
    const lines = await linesOf(place.teamId, await matching(rows), format, wanted.fields);
    if (lines.length > 0) {
      yield Buffer.from(before + lines.join(between));
      before = between;
    }
    after = page.next;
  } while (after !== null && isWanted(after.part));
  const rest = (before === head ? head : end) + tail;
  if (rest !== '') yield Buffer.from(rest);
}

/** What is before the first line, between lines, after the last line, and at the end. */
const FRAMES: Readonly<Record<ChangesFormat, { head: string; between: string; end: string; tail: string }>> =
  {
    json: { head: '[', between: ',', end: '', tail: ']' },
    ndjson: { head: '', between: '\n', end: '\n', tail: '' },
    csv: {
      head: csvLine(['type', 'id', 'version', 'field', 'value', 'previousValue']),
      between: '',
      end: '',
      tail: '',
    },
  };

function typeOf({ before, after }: ChangedRow): Difference['type'] {
  return before === null ? 'added' : after === null ? 'removed' : 'changed';
}

/**
 * Omits records whose value at the end of the range equals their value at its start. Yields regularly, because
 * comparing a whole page may take half a second.
 */
async function linesOf(
  teamId: string,
  rows: readonly ChangedRow[],
  format: ChangesFormat,
  fields: ReadonlySet<string> | null,
): Promise<string[]> {
  const lines: string[] = [];
  let compared = 0;
  for (const row of rows) {
    if (compared > COMPARED_CHARACTERS) {
      compared = 0;
      await ownTurn(teamId);
    }
    const line = format === 'csv' ? csvOf(row, fields) : lineOf(row, fields);
    if (line !== undefined) lines.push(line);
    compared += (row.before?.length ?? 0) + (row.after?.length ?? 0);
  }
  return lines;
}

function lineOf(row: ChangedRow, only: ReadonlySet<string> | null): string | undefined {
  const { id, version, before, after } = row;
  if (before === null && after !== null && only === null) {
    return `{"type":"added","id":${JSON.stringify(id)},"version":${version},"record":${after}}`;
  }
  const { type, fields } = differenceIn(row, only) ?? {};
  if (fields === undefined) return undefined;
  if (type !== 'added') return JSON.stringify({ type, id, version, fields });
  const members = fields.map(({ key, value }) => [key, value]);
  return JSON.stringify({ type, id, version, record: Object.fromEntries([['id', id], ...members]) });
}

/** A line for each field. The id of the record is on every line, and no field. */
function csvOf(row: ChangedRow, only: ReadonlySet<string> | null): string | undefined {
  const difference = differenceIn(row, only);
  if (difference === undefined) return undefined;
  const { type, id, fields } = difference;
  const start = [type, id, String(row.version)];
  const lines = fields
    .filter(({ key }) => key !== 'id')
    .map(({ key, value, previousValue }) => csvLine([...start, key, cellOf(value), cellOf(previousValue)]));
  return lines.length > 0 ? lines.join('') : csvLine([...start, '', '', '']);
}

function cellOf(value: unknown): string {
  return value === undefined ? '' : textOf(value);
}

/** The difference in some fields (null: in all); undefined if these are the same. */
function differenceIn(row: ChangedRow, only: ReadonlySet<string> | null): Difference | undefined {
  const { id, before, after, compare } = row;
  const all = differenceOf({ id, before: before ?? undefined, after: after ?? undefined }, compare);
  const fields = only === null ? all.fields : all.fields.filter(({ key }) => only.has(key));
  // If records are compared by text, the order of their fields may be all that differs.
  const isOther = fields.length > 0 || (compare === 'text' && only === null);
  return isOther ? { ...all, fields } : undefined;
}
