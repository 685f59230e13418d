/** Reading the records of a version: page by page, or by a search for text. */
import type { RecordOperations, RecordPage } from '../record-operations.ts';
import { snapshot, type View } from './transaction.ts';

// A range of `seq`, not `limit`: so a page passes over a bounded number of rows of other versions, and no inner select
// has to count (measured: 5.8 instead of 4.8 M records/s).
const RANGE = `from record
  where workflow = ? and seq > ? and seq <= ? and added_in <= ? and (removed_in is null or removed_in > ?)`;
// SQLite joins the page: measured at 5.8 M records/s against 0.9 M/s row by row. Its end is known without `max(seq)`,
// which would cost a tenth of the time.
const PAGE = `
  select cast(? || group_concat(body, ?) as blob) as json, count(*) as count, null as lastSeq ${RANGE}`;
// The subquery is a co-routine that yields its rows in order, which is the order in which they are joined.
const FIRST_OF_PAGE = `
  select cast(? || group_concat(body, ?) as blob) as json, count(*) as count, max(seq) as lastSeq
  from (select seq, body ${RANGE} order by seq limit ?)`;

export function page(view: View, input: Parameters<RecordOperations['page']>[0]): RecordPage {
  const { afterSeq, rows, version, limit, separator = ',', lead = '' } = input;
  const workflow = numbersOf(view, input);
  if (workflow === undefined) return NOTHING;
  const end = afterSeq + rows;
  const range = [workflow.number, afterSeq, end, version, version];
  const row =
    limit === undefined
      ? view.db.get<PageRow>(PAGE, lead, separator, ...range)
      : view.db.get<PageRow>(FIRST_OF_PAGE, lead, separator, ...range, limit);
  return toPage(view, row, { ...workflow, end, limit });
}

/** How many bytes of records one search scans: it blocks its thread meanwhile. */
const MAX_SEARCHED_BYTES = 8_388_608;

// Reads only the header of each row.
const AHEAD = `select seq, octet_length(body) as bytes ${RANGE} order by seq`;
// `lower` knows only the letters of ASCII.
const FOUND = `
  select cast(group_concat(body, ?) as blob) as json, count(*) as count, max(seq) as lastSeq
  from (select seq, body ${RANGE} and instr(lower(body), lower(?)) > 0 order by seq limit ?)`;

export function search(view: View, input: Parameters<RecordOperations['search']>[0]): RecordPage {
  const { version, q, afterSeq, scan, limit } = input;
  return snapshot(view, () => {
    const workflow = numbersOf(view, input);
    if (workflow === undefined) return NOTHING;
    const { number } = workflow;
    let end = afterSeq + scan;
    let bytes = 0;
    for (const row of view.db.all<{ seq: number; bytes: number }>(
      AHEAD,
      number,
      afterSeq,
      end,
      version,
      version,
    )) {
      bytes += row.bytes;
      if (bytes < MAX_SEARCHED_BYTES) continue;
      end = row.seq;
      break;
    }
    const row = view.db.get<PageRow>(
      FOUND,
      input.separator ?? ',',
      number,
      afterSeq,
      end,
      version,
      version,
      q,
      limit,
    );
    return toPage(view, row, { ...workflow, end, limit });
  });
}

/** Skips a gap that erasing or pruning has left: the last number from `end` on before the next row. */
export function beforeNext(view: View, workflow: number, end: number): number {
  const next = view.db.get<{ seq: number | null }>(
    'select min(seq) as seq from record where workflow = ? and seq > ?',
    workflow,
    end,
  );
  return next?.seq == null ? Number.MAX_SAFE_INTEGER : next.seq - 1;
}

interface PageRow {
  json: Uint8Array | null;
  count: number;
  lastSeq: number | null;
}

const NOTHING: RecordPage = {
  json: new Uint8Array(),
  count: 0,
  lastSeq: Number.MAX_SAFE_INTEGER,
  done: true,
};

/** @param looked the range that was read, to `end` unless `limit` rows were found before it */
function toPage(
  view: View,
  row: PageRow | undefined,
  looked: { number: number; nextSeq: number; end: number; limit: number | undefined },
): RecordPage {
  const { number, nextSeq, end, limit } = looked;
  if (row?.json == null) {
    const lastSeq = beforeNext(view, number, end);
    return { ...NOTHING, lastSeq, done: lastSeq >= nextSeq - 1 };
  }
  const lastSeq = limit !== undefined && row.count >= limit ? (row.lastSeq ?? end) : end;
  return { json: row.json, count: row.count, lastSeq, done: lastSeq >= nextSeq - 1 };
}

/** The number that identifies the workflow in `record`, and the `seq` that its next new record will get. */
function numbersOf(
  view: View,
  { teamId, workflowId }: { teamId: string; workflowId: string },
): { number: number; nextSeq: number } | undefined {
  return view.db.get(
    'select number, next_seq as nextSeq from workflow where team_id = ? and id = ?',
    teamId,
    workflowId,
  );
}
