/**
 * Reads the records of a version in pages, searches them for a text, lists the changes between two versions, and reads
 * what a run compares with. A record is stored as rows, each valid from version `added_in` until before version
 * `removed_in`. A run writes rows of the next version, which no reader sees until `publish` makes that version current.
 */

import type { AttemptLease } from '../../model/job.ts';
import type { ComparedRecord } from '../../model/planned-writes.ts';
import type { Definition } from '../../model/workflow.ts';
import { both, MAX_BATCH, type Pick, type Sql } from '../sql.ts';
import type { View } from '../transaction.ts';
import { fenced } from './jobs.ts';
import { hasId, inOrder, inWorkflow, ofWorkflow } from './record-indexes.ts';

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

// Each statement reads a range of `seq` instead of a number of rows, which limits how many rows of other versions it
// reads.
const range = (pick: Pick, end = '$4') => `
  record
  where ${inWorkflow(pick)} and seq > $3 and seq <= ${end}
    and added_in <= $5 and (removed_in is null or removed_in > $5)`;
// Sorting by `seq` makes PostgreSQL's planner use the primary key, the only index in this order. Otherwise the planner
// might scan the whole workflow by another index.
const sorted = (rows: string, limit = '') => `(select seq, body from ${rows} order by seq ${limit}) as found`;
// The database joins the records into one value, so that rows need not be parsed one by one (measured on SQLite: 5.8
// million records/s instead of 0.9). The separator is part of the statement, and `last` is left out where it is not
// needed, because SQLite evaluates both for each row: whole reads took a third longer.
const joined = (pick: Pick, rows: string, separator: Separator, last = 'max(seq)') => `
  (select cast($6::text || string_agg(body, '${separator}') as ${pick({ sqlite: 'blob', postgres: 'text' })}) as json,
          count(*) as count, ${last} as "lastSeq"
   from ${rows}) as joined`;
const NEXT_SEQ = '(select next_seq from workflow where team_id = $1 and id = $2) as "nextSeq"';

/** A statement for each separator. */
const forEachSeparator = (make: (pick: Pick, separator: Separator) => string) => ({
  ',': both((pick) => make(pick, ',')),
  '\n': both((pick) => make(pick, '\n')),
});
const PAGE = forEachSeparator((pick, separator) => {
  // SQLite finds the rows in this order anyway, and an inner select would make the query 25% slower.
  const rows = pick({ sqlite: range(pick), postgres: sorted(range(pick)) });
  return `select ${NEXT_SEQ}, joined.* from ${joined(pick, rows, separator, 'null')}`;
});
const FIRST_OF_PAGE = forEachSeparator(
  (pick, separator) =>
    `select ${NEXT_SEQ}, joined.* from ${joined(pick, sorted(range(pick), 'limit $7'), separator)}`,
);

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
    afterSeq: number;
    rows: number;
    limit?: number;
    separator?: Separator;
    lead?: string;
  },
): Promise<RecordPage> {
  const { afterSeq, rows, version, limit, separator = ',', lead = '' } = input;
  const end = afterSeq + rows;
  const at = [input.teamId, input.workflowId, afterSeq, end, version, lead] as const;
  const row = await (limit === undefined
    ? view.db.get<PageRow>(PAGE[separator], ...at)
    : view.db.get<PageRow>(FIRST_OF_PAGE[separator], ...at, limit));
  return toPage(view, input, row, { end, limit });
}

/** Maximum bytes of records that one search reads, so that it does not use its connection for long. */
const MAX_SEARCHED_BYTES = 8_388_608;

// The end of the range is computed from lengths alone, without reading bodies. With the collation "C", `lower` changes
// only ASCII letters.
const SEARCH = forEachSeparator(
  (pick, separator) => `
  with range as materialized (
    select coalesce(
      (select min(seq) from (select seq, sum(octet_length(body)) over (order by seq) as bytes from ${range(pick)}) as sized
       where bytes >= ${MAX_SEARCHED_BYTES}),
      $4) as "end")
  select ${NEXT_SEQ}, (select "end" from range) as "end", joined.*
  from ${joined(
    pick,
    sorted(
      `${range(pick, '(select "end" from range)')} and strpos(lower(body collate "C"), lower($7::text collate "C")) > 0`,
      'limit $8',
    ),
    separator,
  )}`,
);

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
    q: string;
    afterSeq: number;
    scan: number;
    limit: number;
    separator?: Separator;
  },
): Promise<RecordPage> {
  const { version, q, afterSeq, scan, limit, separator = ',' } = input;
  const row = await view.db.get<PageRow & { end: number }>(
    SEARCH[separator],
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
export async function beforeNext(view: View, { teamId, workflowId }: At, end: number): Promise<number> {
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

/** Where the next page of changes begins. */
export interface ChangesCursor {
  part: 'written' | 'removed';
  version: number;
  seq: number;
}

export interface ChangedRow {
  id: string;
  /** The version that last wrote or removed the record. */
  version: number;
  /** The record's JSON text in version `since`; null if the record did not exist. */
  before: string | null;
  /** The record's JSON text in version `until`; null if the record no longer exists. */
  after: string | null;
  /** Set if the definition of the workflow compares records by text. */
  compare?: 'text';
}

/** Maximum bytes of records that one call returns, counting the texts before and after the change. */
const MAX_BYTES = 8_388_608;

// The changes between two versions are found by two indexes: on the version that added a row, and on the version that
// removed a row. A row that was added in between and is visible in the later version is an added or changed record; an
// id has at most one such row. A row that is visible in the earlier version, was closed in between and has no row of
// the same id in the later version is a removed record. Each call reads only one of the two indexes.

/**
 * SQL for the newest row up to a version that has this `seq`. A record keeps its `seq` until it is removed, so that its
 * rows follow each other without a gap. The primary key ends with `added_in`, so that only this row is read, however many
 * versions have changed the record.
 */
function lastBy(pick: Pick, column: string, seq: string, version: string): string {
  return `(select ${column} from record last
    where ${inWorkflow(pick, 'last')} and last.seq = ${seq} and last.added_in <= ${version}
    order by last.added_in desc limit 1)`;
}

// A subquery looks up each record's row in the other version, by its `seq`, or if it was removed and added again, by its
// id. Its `limit` keeps the planner from turning it into a join.
const WRITTEN = both(
  (pick) => `
  select new.added_in as version, new.seq, new.id, new.added_in as reported,
         case when new.removed_in is null or new.removed_in > $5::bigint then coalesce(
           ${lastBy(pick, 'last.body', 'new.seq', '$6::bigint')},
           (select old.body from record old /* use record_closed */
            where ${ofWorkflow(pick, 'closed', 'old')} and ${hasId(pick, 'new.id', 'old')} and old.seq < new.seq
              and old.added_in <= $6::bigint and old.removed_in + 0 > $6::bigint limit 1)) end as before,
         case when new.removed_in is null or new.removed_in > $5::bigint then new.body end as after
  from record new /* use record_added */
  where ${ofWorkflow(pick, 'added', 'new')}
    and (new.added_in, new.seq) > ($3::bigint, $4::bigint) and new.added_in <= $5::bigint
  order by new.added_in, new.seq limit $7`,
);
const REMOVED = both(
  (pick) => `
  with found as materialized (
  select old.removed_in as version, old.seq, old.id,
         case when old.added_in > $6::bigint
                or ${lastBy(pick, 'coalesce(last.removed_in, $5 + 1) > $5::bigint', 'old.seq', '$5::bigint')}
                or (select true from record kept
                    where ${ofWorkflow(pick, 'current', 'kept')} and ${hasId(pick, 'old.id', 'kept')}
                      and kept.added_in <= $5::bigint limit 1)
                or (select true from record kept /* use record_closed */
                    where ${ofWorkflow(pick, 'closed', 'kept')} and ${hasId(pick, 'old.id', 'kept')}
                      and kept.seq > old.seq
                      and kept.added_in <= $5::bigint and kept.removed_in + 0 > $5::bigint limit 1)
              then null else old.body end as before
  from record old /* use record_removed */
  where ${ofWorkflow(pick, 'removed', 'old')}
    and (old.removed_in, old.seq) > ($3::bigint, $4::bigint) and old.removed_in <= $5::bigint
  order by old.removed_in, old.seq limit $7)
  select version, seq, id, before, null as after,
         case when before is not null then
           (select max(last.removed_in + 0) from record last /* use record_closed */
            where ${ofWorkflow(pick, 'closed', 'last')} and ${hasId(pick, 'found.id', 'last')}
              and last.removed_in + 0 <= $5::bigint) end as reported
  from found order by version, seq`,
);

interface Row extends ChangedRow {
  version: number;
  seq: number;
  reported: number;
}

/**
 * Returns the net differences between two versions, with each id at most once. A record is left out if it was added and
 * removed in between, or if its text is the same in both versions. A record that was removed and added again is
 * reported as changed. Added and changed records come first, in the order in which they were written, then removed
 * ones.
 *
 * Reads up to `limit` rows and about 8 MiB, so a page may be empty without being the last one; on the last page, `next`
 * is null. Both versions must be readable, and the caller must check again after the call that they still are.
 */
export async function changes(
  view: View,
  input: {
    teamId: string;
    workflowId: string;
    since: number;
    until: number;
    after: ChangesCursor | null;
    limit: number;
  },
): Promise<{ rows: ChangedRow[]; next: ChangesCursor | null }> {
  const { since, until } = input;
  const found = await bounds(view, input);
  if (found === undefined) return { rows: [], next: null };
  const limit = Math.max(1, Math.min(input.limit, Math.floor(MAX_BYTES / (2 * found.largest))));
  const { compare } = JSON.parse(found.definition) as Definition;
  const compared = compare === 'text' ? { compare } : {};
  const { part, version, seq } = input.after ?? { part: 'written', version: since + 1, seq: 0 };
  // Most versions replace records, and remove none.
  const isFirstRemoved = part === 'removed' && version === since + 1 && seq === 0;
  if (isFirstRemoved && !(await hasRemoved(view, input))) return { rows: [], next: null };
  const rows = await view.db.snapshot(async (db) => {
    await inOrder(db);
    return db.all<Row>(
      part === 'written' ? WRITTEN : REMOVED,
      input.teamId,
      input.workflowId,
      version,
      seq,
      until,
      since,
      limit,
    );
  });
  return {
    rows: rows
      .filter(part === 'written' ? isWritten : isRemoved)
      .map(({ id, reported, before, after }) => ({ id, version: reported, before, after, ...compared })),
    next: nextCursor(part, rows.length < limit ? undefined : rows.at(-1), since),
  };
}

/** Leaves out records that were added and removed again, or changed and changed back. */
function isWritten({ before, after }: Row): boolean {
  return after !== null && after !== before;
}

function isRemoved({ before }: Row): boolean {
  return before !== null;
}

/**
 * Returns the definition, and the length of the longest record in the version `until`. The length never decreases from
 * version to version, so it is an upper bound for `since` as well.
 */
function bounds(
  view: View,
  input: { teamId: string; workflowId: string; until: number },
): Promise<{ largest: number; definition: string } | undefined> {
  return view.db.get`
    select greatest(1, largest) as largest, definition
    from version
    join workflow on workflow.team_id = version.team_id and workflow.id = version.workflow_id
    where version.team_id = ${input.teamId} and version.workflow_id = ${input.workflowId}
      and version.number = ${input.until}::bigint`;
}

/** Whether any of the versions after `since` removed a record. */
async function hasRemoved(
  view: View,
  { teamId, workflowId, since, until }: { teamId: string; workflowId: string; since: number; until: number },
): Promise<boolean> {
  const found = await view.db.get`
    select 1 as found from version where team_id = ${teamId} and workflow_id = ${workflowId}
      and number > ${since}::bigint and number <= ${until}::bigint and removed > 0 limit 1`;
  return found !== undefined;
}

function nextCursor(part: ChangesCursor['part'], last: Row | undefined, since: number): ChangesCursor | null {
  if (last !== undefined) return { part, version: last.version, seq: last.seq };
  return part === 'written' ? { part: 'removed', version: since + 1, seq: 0 } : null;
}

// The rest of this file reads what a run needs before it decides what to write: the rows of given ids, and all current
// rows.

export interface Compared {
  /** The version that the run writes: the current version + 1. */
  version: number;
  /** Rows with ids of the batch that either are current or were written by this run, in the order of the ids. */
  rows: ComparedRecord[];
}

/** Returns the workflow of an attempt, and the version that the attempt writes. Throws FencedError. */
async function heldWorkflow(
  db: Sql,
  held: AttemptLease,
): Promise<{ workflowId: string; version: number; nextSeq: number }> {
  const workflow = await db.get<{ workflowId: string; version: number; nextSeq: number }>`
    select workflow.id as "workflowId", current_version + 1 as version, next_seq as "nextSeq"
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

const CURRENT = both(
  (pick) => `
  select seq from record
  where ${inWorkflow(pick)} and seq > $3 and seq <= $4 and coalesce(removed_in, 0) = 0 order by seq`,
);

/**
 * Returns, in order, the `seq` of every current record among the `rows` numbers after `afterSeq`. With this list, a run
 * finds the current records that it did not deliver.
 */
export async function currentSeqs(
  view: View,
  { held, afterSeq, rows }: { held: AttemptLease; afterSeq: number; rows: number },
): Promise<{ seqs: number[]; lastSeq: number; done: boolean }> {
  const { workflowId, nextSeq } = await heldWorkflow(view.db, held);
  const { teamId } = held;
  const end = afterSeq + rows;
  const found = await view.db.all<{ seq: number }>(CURRENT, teamId, workflowId, afterSeq, end);
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
