/**
 * Reads the records of a version in pages, searches them for a text, and reads what a run compares with. A record is stored as rows, each valid from version `added_in` until before version
 * `removed_in`. A run writes rows of the next version, which no reader sees until `publish` makes that version current.
 */

import type { AttemptLease } from '../../model/job.ts';
import type { ComparedRecord } from '../../model/planned-writes.ts';
import { both, MAX_BATCH, type Pick, type Sql } from '../sql.ts';
import type { View } from '../transaction.ts';
import { looked, type Reading, reading, readingOf, scanned } from './history/visible-rows.ts';
import { fenced } from './jobs.ts';
import { hasId, inWorkflow, ofWorkflow } from './record-indexes.ts';

export interface RecordPage {
  /** UTF-8. */
  json: Uint8Array;
  count: number;
  /** The value of `afterSeq` for the next page. */
  lastSeq: number;
  done: boolean;
}

interface At {
  teamId: string;
  workflowId: string;
}

type Separator = ',' | '\n';

// Sorting by `seq` makes PostgreSQL's planner use the primary key, the only index in this order. Otherwise the planner
// might scan the whole workflow by another index. SQLite finds the rows in this order anyway, and whole reads would take
// a quarter longer.
const IN_ORDER = 'order by record.seq';
// The database joins the records into one value, so that rows need not be parsed one by one (measured on SQLite: 5.8
// million records/s instead of 0.9). The separator is part of the statement, and `last` is left out where it is not
// needed, because SQLite evaluates both for each row: whole reads took a third longer.
const joined = (pick: Pick, rows: string, separator: Separator, last = 'max(seq)') => `
  (select cast($6::text || string_agg(value, '${separator}') as ${pick({ sqlite: 'blob', postgres: 'text' })}) as json,
          count(*) as count, ${last} as "lastSeq"
   from (${rows}) as found)`;
const NEXT_SEQ = '(select next_seq from workflow where team_id = $1 and id = $2) as "nextSeq"';

/** A statement for each separator and each way to find the rows. */
function statements(make: (pick: Pick, separator: Separator, of: Reading) => string) {
  const forEach = (separator: Separator) => ({
    all: both((pick) => make(pick, separator, 'all')),
    few: both((pick) => make(pick, separator, 'few')),
  });
  return { ',': forEach(','), '\n': forEach('\n') };
}
// One of the two ways to find rows finds nothing. A union of the rows would make SQLite's query a quarter slower.
const pageOf = (limit: string, last?: string) =>
  statements((pick, separator, of) => {
    const order = limit === '' && pick({ sqlite: true, postgres: false }) ? '' : IN_ORDER;
    const scan = (end?: string) =>
      joined(pick, `${scanned(pick, 'record.body', end)} ${order} ${limit}`, separator, last);
    if (of === 'all') return `select ${NEXT_SEQ}, joined.* from ${scan('$4')} as joined`;
    return `
      with ${reading(pick)}
      select ${NEXT_SEQ}, coalesce(one.json, other.json) as json, one.count + other.count as count,
             coalesce(one."lastSeq", other."lastSeq") as "lastSeq"
      from ${scan()} as one
      cross join ${joined(pick, `${looked(pick, 'last.body')} ${limit}`, separator, last)} as other`;
  });
const PAGE = pageOf('', 'null::bigint');
const FIRST_OF_PAGE = pageOf('limit $7');

/**
 * Returns one page of a version: the records whose `seq` is greater than `afterSeq` and at most `afterSeq + rows`,
 * limited to `limit` records. The page is JSON objects joined by `separator`, with `lead` before the first; no record
 * contains a line end. A page may be empty without being the last one. Only the last page has `done`.
 */
export async function page(
  view: View,
  input: {
    teamId: string;
    workflowId: string;
    version: number;
    /** Number of versions of the workflow, if known: a page is found faster if there are few. */
    versions?: number;
    afterSeq: number;
    rows: number;
    limit?: number;
    separator?: Separator;
    lead?: string;
  },
): Promise<RecordPage> {
  const { afterSeq, rows, version, versions, limit, separator = ',', lead = '' } = input;
  const of = readingOf(versions);
  const end = afterSeq + rows;
  const at = [input.teamId, input.workflowId, afterSeq, end, version, lead] as const;
  const row = await (limit === undefined
    ? view.db.get<PageRow>(PAGE[separator][of], ...at)
    : view.db.get<PageRow>(FIRST_OF_PAGE[separator][of], ...at, limit));
  return toPage(view, input, row, { end, limit });
}

/** Maximum bytes of records that one search reads, so that it does not use its connection for long. */
const MAX_SEARCHED_BYTES = 8_388_608;

// The end of the range is computed from lengths alone, without reading bodies. With the collation "C", `lower` changes
// only ASCII letters.
const SEARCH = statements((pick, separator, of) => {
  const rows = (value: (body: string) => string, table: string) => {
    const end = (last: string) => `(select ${last} from ${table})`;
    const scan = `select * from (${scanned(pick, value('record.body'), end('scanned'))} ${IN_ORDER}) as one`;
    if (of === 'all') return `(${scan}) as found`;
    return `(${scan} union all select * from (${looked(pick, value('last.body'), end('looked'))}) as other) as found`;
  };
  const size = (body: string) => `octet_length(${body})`;
  const found = `select seq, value from ${rows(String, 'range')}
    where strpos(lower(value collate "C"), lower($7::text collate "C")) > 0 limit $8`;
  return `
  with ${of === 'all' ? 'reading as materialized (select $4::bigint as scanned, $3::bigint as looked)' : reading(pick)},
  range as materialized (
    select "end", least("end", scanned) as scanned, least("end", looked) as looked
    from reading cross join (select coalesce(
      (select min(seq) from (select seq, sum(value) over (order by seq) as bytes from ${rows(size, 'reading')}) as sized
       where bytes >= ${MAX_SEARCHED_BYTES}),
      $4::bigint) as "end" limit 1) as sized)
  select ${NEXT_SEQ}, (select "end" from range) as "end", joined.* from ${joined(pick, found, separator)} as joined`;
});

/**
 * Finds records of a version whose JSON text contains `q`, ignoring the case of ASCII letters. `q` must be escaped as
 * in JSON. Scans `scan` numbers after `afterSeq`, or about 8 MiB, and returns at most `limit` records; `lastSeq` is the
 * last number scanned.
 */
export async function search(
  view: View,
  input: {
    teamId: string;
    workflowId: string;
    version: number;
    versions?: number;
    q: string;
    afterSeq: number;
    scan: number;
    limit: number;
    separator?: Separator;
  },
): Promise<RecordPage> {
  const { version, versions, q, afterSeq, scan, limit, separator = ',' } = input;
  const row = await view.db.get<PageRow & { end: number }>(
    SEARCH[separator][readingOf(versions)],
    input.teamId,
    input.workflowId,
    afterSeq,
    afterSeq + scan,
    version,
    '',
    q,
    limit,
  );
  return toPage(view, input, row, { end: row?.end ?? afterSeq + scan, limit });
}

/**
 * Returns the number before the `seq` of the first existing row after `end`. This number is greater than `end` if
 * erasing or pruning left a gap.
 */
async function beforeNext(view: View, { teamId, workflowId }: At, end: number): Promise<number> {
  const next = await view.db.get<{ seq: number }>(NEXT, teamId, workflowId, end);
  return next === undefined ? Number.MAX_SAFE_INTEGER : next.seq - 1;
}

const NEXT = both(
  (pick) => `select seq from record where ${inWorkflow(pick)} and seq > $3 order by seq limit 1`,
);

interface PageRow {
  /** The `seq` that the workflow's next new record will get; null for an unknown workflow. */
  nextSeq: number | null;
  /** SQLite returns bytes, which avoids copying the text. */
  json: Uint8Array | string | null;
  count: number;
  /** The `seq` of the last record. Only for statements with a limit. */
  lastSeq: number | null;
}

const NOTHING: RecordPage = {
  json: new Uint8Array(),
  count: 0,
  lastSeq: Number.MAX_SAFE_INTEGER,
  done: true,
};

/** @param range the statement read up to `end`, or less if it found `limit` records before `end` */
async function toPage(
  view: View,
  at: At,
  row: PageRow | undefined,
  range: { end: number; limit: number | undefined },
): Promise<RecordPage> {
  const { end, limit } = range;
  if (row === undefined || row.nextSeq === null) return NOTHING;
  if (row.json === null) {
    const lastSeq = await beforeNext(view, at, end);
    return { ...NOTHING, lastSeq, done: lastSeq >= row.nextSeq - 1 };
  }
  const lastSeq = limit !== undefined && row.count >= limit ? (row.lastSeq as number) : end;
  return {
    json: typeof row.json === 'string' ? Buffer.from(row.json) : row.json,
    count: row.count,
    lastSeq,
    done: lastSeq >= row.nextSeq - 1,
  };
}

// The rest of this file reads what a run needs before it decides what to write: the rows of given ids, and all current
// rows.

export interface Compared {
  /** The version that the run writes: the current version + 1. */
  version: number;
  /** Rows with ids of the batch that either are current or were written by this run, in the order of the ids. */
  rows: ComparedRecord[];
}

interface HeldWorkflow {
  workflowId: string;
  version: number;
  /** Number of versions that are stored, including the one that the attempt writes. */
  versions: number;
  nextSeq: number;
}

/** Returns the workflow of an attempt, and the version that the attempt writes. Throws FencedError. */
async function heldWorkflow(db: Sql, held: AttemptLease): Promise<HeldWorkflow> {
  const workflow = await db.get<HeldWorkflow>`
    select workflow.id as "workflowId", current_version + 1 as version,
           current_version + 1 - pruned_version as versions, next_seq as "nextSeq"
    from job
    join workflow on workflow.team_id = job.team_id and workflow.id = job.workflow_id
    where job.team_id = ${held.teamId} and job.id = ${held.jobId} and job.attempt = ${held.attempt}
      and job.state = 'running'`;
  if (workflow === undefined) throw fenced(held);
  return workflow;
}

// The rows are joined into lists and texts. Without this, SQLite's binding took a fifth of the time of a comparison, and
// JavaScript another fifth. No body contains a line end.
const JOINED = `
  string_agg(place::text, ',') as places, string_agg(seq::text, ',') as seqs,
  string_agg("addedIn"::text, ',') as "addedIns", string_agg(body, '\n') as bodies,
  string_agg(coalesce(published, ''), '\n') as published`;
const COMPARE = both((pick) => {
  const current = (id: string) => `${ofWorkflow(pick, 'current')} and ${hasId(pick, id)}`;
  // If this run has written the current row, this finds the row of the previous version, which the run has closed.
  const closed = (columns: string, row: string) => `
    select ${columns} from record closed
    where ${inWorkflow(pick, 'closed')} and closed.seq = ${row}.seq and closed.removed_in + 0 = $3::integer
      and ${row}.added_in = $3::integer`;
  return pick({
    // A statement per id took twice as long.
    sqlite: `
      select ${JOINED} from (
        select wanted.key as place, seq, added_in as "addedIn", ${bodyOfSize('body', '($5 ->> wanted.key)')} as body,
               (${closed(bodyOfSize('closed.body', '($5 ->> wanted.key)'), 'record')}) as published
        from json_each($4) as wanted cross join record /* use record_current */
        where ${current('wanted.value')}) as found`,
    // PostgreSQL looks up each id separately, because the `limit` keeps the planner from turning this into a join with
    // all records.
    postgres: `
      select ${JOINED} from (
        select wanted.place - 1 as place, current.seq, current.added_in as "addedIn",
               ${bodyOfSize('current.body', 'wanted.size')} as body,
               ${bodyOfSize('closed.body', 'wanted.size')} as published
        from unnest($4::text[], $5::integer[]) with ordinality as wanted (id, size, place)
        cross join lateral (select seq, added_in, body from record where ${current('wanted.id')} limit 1) as current
        left join lateral (${closed('body', 'current')} limit 1) as closed on true
        order by wanted.place) as found`,
  });
});

/** The found rows, in the order of the ids. All fields are null if none was found. */
interface JoinedRows {
  places: string | null;
  seqs: string;
  addedIns: string;
  bodies: string;
  published: string;
}

function rowsOf(joined: JoinedRows | undefined, ids: readonly string[]): ComparedRecord[] {
  if (joined === undefined || joined.places === null) return [];
  const [places, seqs, addedIns] = [joined.places, joined.seqs, joined.addedIns].map(
    (list) => JSON.parse(`[${list}]`) as number[],
  ) as [number[], number[], number[]];
  const bodies = joined.bodies.split('\n');
  const published = joined.published.split('\n');
  return places.map((place, at) => ({
    id: ids[place] as string,
    seq: seqs[at] as number,
    addedIn: addedIns[at] as number,
    body: bodies[at] as string,
    published: published[at] || null,
  }));
}

/**
 * SQL for the body, or for an empty text if the body is too long to equal the incoming record. The check is cheap,
 * because `octet_length` does not read a long body. The limit is generous, because a number may have been stored with
 * more digits than the incoming text has.
 */
function bodyOfSize(body: string, size: string): string {
  const bytes = `octet_length(${body})`;
  // Looking up the size takes longer than the first comparison.
  return `case when ${bytes} > 4096 and ${bytes} > 4 * ${size} + 4096 then '' else ${body} end`;
}

/**
 * Looks up the ids of a batch (at most 2,000). Call this after the previous batch has been staged. `sizes` are the UTF-8
 * lengths of the incoming records, in the order of `ids`. A stored body that is much longer than the incoming record
 * differs in any case, and is returned as '', so that 2,000 bodies of 1 MiB are never in memory. Without `sizes`, every
 * body is returned.
 */
export async function compare(
  view: View,
  { held, ids, sizes }: { held: AttemptLease; ids: readonly string[]; sizes?: readonly number[] },
): Promise<Compared> {
  if (ids.length > MAX_BATCH)
    throw new RangeError(`A batch may have at most ${MAX_BATCH} records, but this one has ${ids.length}`);
  const { workflowId, version } = await heldWorkflow(view.db, held);
  const given = sizes ?? ids.map(() => null);
  const joined = await view.db.get<JoinedRows>(COMPARE, held.teamId, workflowId, version, ids, given);
  return { version, rows: rowsOf(joined, ids) };
}

/** Rows that are visible in this version are current, because no version has such a number. */
const LATER = 2_147_483_647;
const CURRENT = {
  all: both((pick) => `select seq from (${scanned(pick, 'record.seq', '$4')} ${IN_ORDER}) as one`),
  few: both(
    (pick) => `
    with ${reading(pick)}
    select seq from (${scanned(pick, 'record.seq')} ${IN_ORDER}) as one
    union all select seq from (${looked(pick, 'last.seq')}) as other`,
  ),
};

/**
 * Returns, in order, the `seq` of every current record among the `rows` numbers after `afterSeq`. With this list, a run
 * finds the current records that it did not deliver.
 */
export async function currentSeqs(
  view: View,
  { held, afterSeq, rows }: { held: AttemptLease; afterSeq: number; rows: number },
): Promise<{ seqs: number[]; lastSeq: number; done: boolean }> {
  const { workflowId, nextSeq, versions } = await heldWorkflow(view.db, held);
  const { teamId } = held;
  const end = afterSeq + rows;
  const found = await view.db.all<{ seq: number }>(
    CURRENT[readingOf(versions)],
    teamId,
    workflowId,
    afterSeq,
    end,
    LATER,
  );
  const lastSeq = found.length > 0 ? end : await beforeNext(view, { teamId, workflowId }, end);
  return { seqs: found.map(({ seq }) => seq), lastSeq, done: lastSeq >= nextSeq - 1 };
}

/** Returns how many current records there are, from the counters that publishing uses. */
export async function currentTotal(view: View, { held }: { held: AttemptLease }): Promise<{ total: number }> {
  const found = await view.db.get<{ total: number }>`
    select coalesce(version.total, 0) + staged_added - staged_removed as total
    from job
    join workflow on workflow.team_id = job.team_id and workflow.id = job.workflow_id
    left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
      and version.number = workflow.current_version
    where job.team_id = ${held.teamId} and job.id = ${held.jobId} and job.attempt = ${held.attempt}
      and job.state = 'running'`;
  if (found === undefined) throw fenced(held);
  return found;
}
