/** Part of a version: a page with a cursor, what changed since another version, or what contains a text. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChangesCursor, DataVersion, RecordPage } from '../store/record-operations.ts';
import type { Store } from '../store/store.ts';
import type { Formatter } from './formats.ts';
import { checkStillThere, PARSED_ROWS, type Place, pageRows } from './read.ts';

/** Numbers of records that one look-up goes through: a few milliseconds. */
const SCAN_ROWS = 2_000;
/** An answer that is held in memory ends after this many bytes, and a cursor goes on: clients follow `Link`. */
const SELECTED_BYTES = 4 * 1_048_576;

export interface Selection {
  /** Only records added or changed after this version. */
  since: number | undefined;
  /** Only records whose text contains this. */
  q: string | undefined;
  limit: number;
  /** Where the answer before this one ended. */
  after: Position | undefined;
  separator: ',' | '\n';
}

/** The `seq` of a record, or a place among changes. */
export type Position = number | ChangesCursor;

/**
 * Up to `limit` records, or fewer if they are large, and where the next answer goes on (null: nowhere).
 *
 * @param signal ends a search whose client is gone
 * @throws VersionGoneError as `readWhole`
 */
export async function select(
  store: Store,
  place: Place,
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

/** Every record of a selection as the bytes of one body, as `readWhole`. */
export async function* readSelected(
  store: Store,
  place: Place,
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
  place: Place,
  version: DataVersion,
  selection: Selection,
): AsyncGenerator<Step> {
  let left = selection.limit;
  let next: Position | null = selection.after ?? (selection.since === undefined ? 0 : START);
  if (version.number === 0 || version.number === selection.since) return;
  while (next !== null && left > 0) {
    const step: Step = await stepOf(store, place, version, selection, next, left);
    yield step;
    left -= step.page.count;
    next = step.next;
    await nextTurn();
  }
}

interface Step {
  page: RecordPage;
  next: Position | null;
}

const START: ChangesCursor = { part: 'written', version: 0, seq: 0 };

async function stepOf(
  store: Store,
  place: Place,
  version: DataVersion,
  { since, q, separator }: Selection,
  at: Position,
  limit: number,
): Promise<Step> {
  const from = { ...place, version: version.number, separator };
  if (since !== undefined) {
    return changedSince(store, place, version, { since, separator, at: at as ChangesCursor, limit });
  }
  const afterSeq = at as number;
  if (q !== undefined) {
    const page = await store.records.search({
      ...from,
      // The texts are JSON: a quote or a line end stands there escaped.
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

/** Whether a record of the version follows: a link that leads to nothing would be a page too many. */
async function follows(store: Store, place: Place, version: DataVersion, after: number): Promise<boolean> {
  for (let afterSeq = after; ; ) {
    const from = { ...place, version: version.number, afterSeq };
    const page = await store.records.page({ ...from, rows: SCAN_ROWS, limit: 1 });
    if (page.count > 0) return true;
    if (page.done) return false;
    afterSeq = page.lastSeq;
    await nextTurn();
  }
}

async function changedSince(
  store: Store,
  place: Place,
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
  // What follows are the removed ones, which have no text at this version.
  return { page, next: next === null || next.part === 'removed' ? null : next };
}
