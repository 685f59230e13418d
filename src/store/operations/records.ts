/**
 * Reads the records of a version: in pages, or those that contain a text. A record is stored as rows, each valid from
 * version `added_in` until before version `removed_in`. A run writes under the next version, which no reader sees until
 * `publish` makes it the current one.
 */
import { both, type Pick, type View } from '../sql.ts';
import { inWorkflow } from './record-indexes.ts';

export interface RecordPage {
  /** UTF-8. */
  json: Uint8Array;
  count: number;
  /** Pass as `afterSeq` for the next page. */
  lastSeq: number;
  /** Whether this was the last page. */
  done: boolean;
}

interface At {
  teamId: string;
  workflowId: string;
}

// A range of `seq` and not a number of rows, so that each statement reads a bounded number of rows of other versions.
const range = (pick: Pick, end = '$4') => `
  record
  where ${inWorkflow(pick)} and seq > $3 and seq <= ${end}
    and added_in <= $5 and (removed_in is null or removed_in > $5)`;
// Sorted, because only the primary key has that order: PostgreSQL's planner then has no reason to take an index that
// would scan the whole workflow.
const sorted = (rows: string, limit = '') => `(select seq, body from ${rows} order by seq ${limit}) as found`;
// The database joins the records into one value, so that nobody need parse one for each (measured on SQLite: 5.8 million
// records/s instead of 0.9).
const joined = (pick: Pick, rows: string) => `
  (select cast($7::text || string_agg(body, $6) as ${pick({ sqlite: 'blob', postgres: 'text' })}) as json,
          count(*) as count, max(seq) as "lastSeq"
   from ${rows}) as joined`;
const NEXT_SEQ = '(select next_seq from workflow where team_id = $1 and id = $2) as "nextSeq"';

const pages = (limit?: string) =>
  both((pick) => {
    // SQLite finds them in order, and an inner select would take a quarter of its speed.
    const unsorted = limit === undefined && pick({ sqlite: true, postgres: false });
    return `select ${NEXT_SEQ}, joined.* from ${joined(pick, unsorted ? range(pick) : sorted(range(pick), limit))}`;
  });
const PAGE = pages();
const FIRST_OF_PAGE = pages('limit $8');

/**
 * One page of a version: the records whose `seq` is among the `rows` numbers after `afterSeq`, at most `limit` of
 * them, as JSON objects joined by `separator` (no record contains a line end), with `lead` before the first. A page
 * may be empty without being the last, which is `done`.
 */
export async function page(
  view: View,
  input: {
    teamId: string;
    workflowId: string;
    version: number;
    afterSeq: number;
    rows: number;
    limit?: number;
    separator?: ',' | '\n';
    lead?: string;
  },
): Promise<RecordPage> {
  const { afterSeq, rows, version, limit, separator = ',', lead = '' } = input;
  const end = afterSeq + rows;
  const at = [input.teamId, input.workflowId, afterSeq, end, version, separator, lead] as const;
  const row = await (limit === undefined
    ? view.db.get<PageRow>(PAGE, ...at)
    : view.db.get<PageRow>(FIRST_OF_PAGE, ...at, limit));
  return toPage(view, input, row, { end, limit });
}

/** Bytes of records that one search reads, which bounds how long it holds its connection. */
const MAX_SEARCHED_BYTES = 8_388_608;

// How far it may read is found from the lengths, without reading bodies. `lower` in "C" changes only ASCII letters.
const SEARCH = both(
  (pick) => `
  with range as materialized (
    select coalesce(
      (select min(seq) from (select seq, sum(octet_length(body)) over (order by seq) as bytes from ${range(pick)}) as sized
       where bytes >= ${MAX_SEARCHED_BYTES}),
      $4) as "end")
  select ${NEXT_SEQ}, (select "end" from range) as "end", joined.*
  from ${joined(
    pick,
    sorted(
      `${range(pick, '(select "end" from range)')} and strpos(lower(body collate "C"), lower($8::text collate "C")) > 0`,
      'limit $9',
    ),
  )}`,
);

/**
 * Records of a version whose JSON text contains `q`, ignoring the case of ASCII letters; `q` must be escaped as in
 * JSON. Scans `scan` numbers after `afterSeq`, or some 8 MiB, and returns at most `limit` records; `lastSeq` says how
 * far it came.
 */
export async function search(
  view: View,
  input: {
    teamId: string;
    workflowId: string;
    version: number;
    q: string;
    afterSeq: number;
    scan: number;
    limit: number;
    separator?: ',' | '\n';
  },
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
    '',
    q,
    limit,
  );
  return toPage(view, input, row, { end: row?.end ?? afterSeq + scan, limit });
}

/** The last `seq` before the next existing row behind `end`: beyond `end` where erasing or pruning left a gap. */
export async function beforeNext(view: View, { teamId, workflowId }: At, end: number): Promise<number> {
  const next = await view.db.get<{ seq: number }>(NEXT, teamId, workflowId, end);
  return next === undefined ? Number.MAX_SAFE_INTEGER : next.seq - 1;
}

const NEXT = both(
  (pick) => `select seq from record where ${inWorkflow(pick)} and seq > $3 order by seq limit 1`,
);

interface PageRow {
  /** The `seq` of the workflow's next new record; null for an unknown workflow. */
  nextSeq: number | null;
  /** Bytes come from SQLite, which saves the copy. */
  json: Uint8Array | string | null;
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
  looked: { end: number; limit: number | undefined },
): Promise<RecordPage> {
  const { end, limit } = looked;
  if (row === undefined || row.nextSeq === null) return NOTHING;
  if (row.json === null || row.lastSeq === null) {
    const lastSeq = await beforeNext(view, at, end);
    return { ...NOTHING, lastSeq, done: lastSeq >= row.nextSeq - 1 };
  }
  const lastSeq = limit !== undefined && row.count >= limit ? row.lastSeq : end;
  return {
    json: typeof row.json === 'string' ? Buffer.from(row.json) : row.json,
    count: row.count,
    lastSeq,
    done: lastSeq >= row.nextSeq - 1,
  };
}
