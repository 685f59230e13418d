/** Lists the changes between two versions of the records. `records.ts` says how versions are stored. */
import type { Definition } from '../../../model/workflow.ts';
import { both } from '../../sql.ts';
import type { View } from '../../transaction.ts';
import { hasId, inOrder, ofWorkflow } from '../record-indexes.ts';
import { lastBy } from './visible-rows.ts';

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
