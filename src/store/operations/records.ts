/** Reads the records of a version: in pages, or those that contain a text. */
import type { RecordOperations, RecordPage } from '../record-operations.ts';
import type { View } from '../sql.ts';

interface At {
  teamId: string;
  workflowId: string;
}

// A range of `seq` and not a number of rows, so that each statement reads a bounded number of rows of other versions.
// Always sorted, because only the primary key has that order: the planner then has no reason to take an index that
// would scan the whole workflow.
const RANGE = `
  from record
  where team_id = $1 and workflow_id = $2 and seq > $3 and seq <= $4
    and added_in <= $5 and (removed_in is null or removed_in > $5)`;
// The database joins a page into one value, so that the client need not parse one value for each row.
const PAGE = `
  select (select next_seq from workflow where team_id = $1 and id = $2) as "nextSeq", joined.*
  from (select string_agg(body, $6) as json, count(*) as count, max(seq) as "lastSeq"
        from (select seq, body ${RANGE} order by seq limit $7) as page) as joined`;

export async function page(view: View, input: Parameters<RecordOperations['page']>[0]): Promise<RecordPage> {
  const { afterSeq, rows, version, limit, separator = ',', lead = '' } = input;
  const end = afterSeq + rows;
  const row = await view.db.get<PageRow>(
    PAGE,
    input.teamId,
    input.workflowId,
    afterSeq,
    end,
    version,
    separator,
    limit ?? null,
  );
  return toPage(view, input, row, { end, limit, lead });
}

/** Bytes of records that one search reads, which bounds how long it holds its connection. */
const MAX_SEARCHED_BYTES = 8_388_608;

// How far it may read is found from the lengths, without reading bodies. `lower` in "C" changes only ASCII letters.
const SEARCH = `
  with range as materialized (
    select coalesce(
      (select min(seq) from (select seq, sum(octet_length(body)) over (order by seq) as bytes ${RANGE}) as sized
       where bytes >= ${MAX_SEARCHED_BYTES}),
      $4) as "end")
  select (select next_seq from workflow where team_id = $1 and id = $2) as "nextSeq", range."end", joined.*
  from range
  cross join lateral (
    select string_agg(body, $6) as json, count(*) as count, max(seq) as "lastSeq"
    from (select seq, body ${RANGE} and seq <= range."end"
            and strpos(lower(body collate "C"), lower($8::text collate "C")) > 0
          order by seq limit $7) as found) as joined`;

export async function search(
  view: View,
  input: Parameters<RecordOperations['search']>[0],
): Promise<RecordPage> {
  const { version, q, afterSeq, scan, limit, separator = ',' } = input;
  const row = await view.db.get<PageRow & { end: number }>(
    SEARCH,
    input.teamId,
    input.workflowId,
    afterSeq,
    afterSeq + scan,
    version,
    separator,
    limit,
    q,
  );
  return toPage(view, input, row, { end: row?.end ?? afterSeq + scan, limit, lead: '' });
}

/** The last `seq` before the next existing row behind `end`: beyond `end` where erasing or pruning left a gap. */
export async function beforeNext(view: View, { teamId, workflowId }: At, end: number): Promise<number> {
  const next = await view.db.get<{ seq: number }>(
    'select seq from record where team_id = $1 and workflow_id = $2 and seq > $3 order by seq limit 1',
    teamId,
    workflowId,
    end,
  );
  return next === undefined ? Number.MAX_SAFE_INTEGER : next.seq - 1;
}

interface PageRow {
  /** The `seq` of the workflow's next new record; null for an unknown workflow. */
  nextSeq: number | null;
  json: string | null;
  count: number;
  lastSeq: number | null;
}

const NOTHING: RecordPage = {
  json: new Uint8Array(),
  count: 0,
  lastSeq: Number.MAX_SAFE_INTEGER,
  done: true,
};

/** @param looked the range that was read: up to `end`, or less when `limit` records were found before it */
async function toPage(
  view: View,
  at: At,
  row: PageRow | undefined,
  looked: { end: number; limit: number | undefined; lead: string },
): Promise<RecordPage> {
  const { end, limit, lead } = looked;
  if (row === undefined || row.nextSeq === null) return NOTHING;
  if (row.json === null || row.lastSeq === null) {
    const lastSeq = await beforeNext(view, at, end);
    return { ...NOTHING, lastSeq, done: lastSeq >= row.nextSeq - 1 };
  }
  const lastSeq = limit !== undefined && row.count >= limit ? row.lastSeq : end;
  // The client has made a string of it, so that this copy cannot be avoided.
  return {
    json: Buffer.from(lead + row.json),
    count: row.count,
    lastSeq,
    done: lastSeq >= row.nextSeq - 1,
  };
}
