/**
 * Reads a part of a version: a page with a cursor, the records changed since another version, or the records that
 * contain a text.
 */

import type { WorkflowRef } from '../model/workflow.ts';
import { ownTurn } from '../std/fair-share.ts';
import type { ChangesCursor } from '../store/operations/history/changes.ts';
import type { RecordPage } from '../store/operations/records.ts';
import type { DataVersion } from '../store/operations/versions.ts';
import type { Store } from '../store/store.ts';
import type { Formatter } from './formats.ts';
import { checkStillThere, PARSED_ROWS, pageRows } from './read.ts';

/** Number of rows scanned by one query, which takes a few milliseconds. */
const SCAN_ROWS = 2_000;
/**
 * Maximum size of a page, because a page is held in memory. A larger page is truncated; the client continues with the
 * cursor in `Link`.
 */
const SELECTED_BYTES = 4 * 1_048_576;

export interface Selection {
  /** Selects only records that were added or changed after this version. */
  since: number | undefined;
  /** Selects only records whose JSON contains this text. */
  q: string | undefined;
  limit: number;
  /** The end of the previous page. */
  after: Position | undefined;
  separator: ',' | '\n';
}

/** A cursor: the `seq` of a record, or a position among changes. */
export type Position = number | ChangesCursor;

/**
 * Returns one page of up to `limit` records, fewer if they are large, and the cursor of the next page (null: this is
 * the last page).
 *
 * @param signal aborts a search whose client has disconnected
 * @throws VersionGoneError like `readWhole`
 */
export async function select(
  store: Store,
  place: WorkflowRef,
  version: DataVersion,
  selection: Selection,
  signal: AbortSignal,
): Promise<{ pages: RecordPage[]; next: Position | null }> {
  const pages: RecordPage[] = [];
  let bytes = 0;
  let next: Position | null = null;
  for await (const step of steps(store, place, version, selection)) {
    signal.throwIfAborted();
    if (step.page.count > 0) pages.push(step.page);
    bytes += step.page.json.length;
    next = step.next;
    if (bytes >= SELECTED_BYTES) break;
  }
  const isWhole = selection.q === undefined && selection.since === undefined;
  if (isWhole && next !== null && !(await follows(store, place, version, next as number))) next = null;
  await checkStillThere(store, place, version);
  return { pages, next };
}

/** Yields the bytes of a body with every record of a selection. Throws like `readWhole`. */
export async function* readSelected(
  store: Store,
  place: WorkflowRef,
  version: DataVersion,
  selection: Selection,
  format: Formatter,
): AsyncGenerator<Uint8Array> {
  let first = true;
  yield Buffer.from(format.head);
  for await (const { page } of steps(store, place, version, selection)) {
    if (page.count === 0) continue;
    yield format.page(page, first);
    first = false;
  }
  await checkStillThere(store, place, version);
  yield Buffer.from(format.tail);
}

async function* steps(
  store: Store,
  place: WorkflowRef,
  version: DataVersion,
  selection: Selection,
): AsyncGenerator<Step> {
  let left = selection.limit;
  let next: Position | null = selection.after ?? (selection.since === undefined ? 0 : START);
  if (version.number === 0 || version.number === selection.since) return;
  while (next !== null && left > 0) {
    await ownTurn(place.teamId);
    const step: Step = await stepOf(store, place, version, selection, next, left);
    yield step;
    left -= step.page.count;
    next = step.next;
  }
}

interface Step {
  page: RecordPage;
  next: Position | null;
}

const START: ChangesCursor = { part: 'written', version: 0, seq: 0 };

async function stepOf(
  store: Store,
  place: WorkflowRef,
  version: DataVersion,
  { since, q, separator }: Selection,
  at: Position,
  limit: number,
): Promise<Step> {
  const from = { ...place, version: version.number, versions: version.versions, separator };
  if (since !== undefined) {
    return changedSince(store, place, version, { since, separator, at: at as ChangesCursor, limit });
  }
  const afterSeq = at as number;
  if (q !== undefined) {
    const page = await store.records.search({
      ...from,
      // The text is escaped as in JSON, because the stored records are JSON, in which quotes and line breaks are
      // escaped.
      q: JSON.stringify(q).slice(1, -1),
      afterSeq,
      scan: SCAN_ROWS,
      limit,
    });
    return { page, next: page.done ? null : page.lastSeq };
  }
  const most = pageRows(version, PARSED_ROWS);
  const page = await store.records.page({ ...from, afterSeq, rows: SCAN_ROWS, limit: Math.min(limit, most) });
  return { page, next: page.done ? null : page.lastSeq };
}

/** Whether another record of the version follows, because a `Link` must not point to an empty page. */
async function follows(
  store: Store,
  place: WorkflowRef,
  version: DataVersion,
  after: number,
): Promise<boolean> {
  for (let afterSeq = after; ; ) {
    const from = { ...place, version: version.number, versions: version.versions, afterSeq };
    const page = await store.records.page({ ...from, rows: SCAN_ROWS, limit: 1 });
    if (page.count > 0) return true;
    if (page.done) return false;
    afterSeq = page.lastSeq;
    await ownTurn(place.teamId);
  }
}

async function changedSince(
  store: Store,
  place: WorkflowRef,
  version: DataVersion,
  input: { since: number; separator: string; at: ChangesCursor; limit: number },
): Promise<Step> {
  const { since, separator, at } = input;
  const { rows, next } = await store.records.changes({
    ...place,
    since,
    until: version.number,
    after: at === START ? null : at,
    limit: Math.min(input.limit, pageRows(version, PARSED_ROWS)),
  });
  const texts = rows.flatMap((row) => (row.after === null ? [] : [row.after]));
  const json = Buffer.from(texts.join(separator));
  const page = { json, count: texts.length, lastSeq: 0, done: next === null };
  // If only removed records follow, this is the last page, because removed records have no text in this version.
  return { page, next: next === null || next.part === 'removed' ? null : next };
}
