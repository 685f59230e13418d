/**
 * The changes of records between two versions, by the indexes on the version that added and that removed a row.
 *
 * A row that was added in between and is visible at the later version is a record added or changed; an id has at most
 * one such row. A row that is visible at the earlier version, was closed in between and has no row of its id at the
 * later one is a record removed. Each call reads on in one of the indexes.
 */
import { both, type View } from '../sql.ts';
import { hasId, inOrder, ofWorkflow } from './record-indexes.ts';

/** Where the next page of changes begins. */
export interface ChangesCursor {
  part: 'written' | 'removed';
  version: number;
  seq: number;
}

export interface ChangedRow {
  id: string;
  /** The version that last wrote it, or that removed it. */
  version: number;
  /** JSON text at `since`; null when it did not exist. */
  before: string | null;
  /** JSON text at `until`; null when it is gone. */
  after: string | null;
}

/** Bytes of records that one call may answer, before and after taken together. */
const MAX_BYTES = 8_388_608;

// The other row of a record is looked up row by row; because of the `limit` the planner cannot make it a join.
const WRITTEN = both(
  (pick) => `
  select new.added_in as version, new.seq, new.id, new.added_in as told,
         (select old.body from record old /* use record_closed */
          where ${ofWorkflow(pick, 'closed', 'old')} and ${hasId(pick, 'new.id', 'old')}
            and old.added_in <= $6::bigint and old.removed_in + 0 > $6::bigint limit 1) as before,
         case when new.removed_in is null or new.removed_in > $5::bigint then new.body end as after
  from record new /* use record_added */
  where ${ofWorkflow(pick, 'added', 'new')}
    and (new.added_in, new.seq) > ($3::bigint, $4::bigint) and new.added_in <= $5::bigint
  order by new.added_in, new.seq limit $7`,
);
const REMOVED = both(
  (pick) => `
  select old.removed_in as version, old.seq, old.id,
         (select max(last.removed_in + 0) from record last /* use record_closed */
          where ${ofWorkflow(pick, 'closed', 'last')} and ${hasId(pick, 'old.id', 'last')}
            and last.removed_in + 0 <= $5::bigint) as told,
         case when old.added_in > $6::bigint
                or (select true from record kept
                    where ${ofWorkflow(pick, 'current', 'kept')} and ${hasId(pick, 'old.id', 'kept')}
                      and kept.added_in <= $5::bigint limit 1)
                or (select true from record kept /* use record_closed */
                    where ${ofWorkflow(pick, 'closed', 'kept')} and ${hasId(pick, 'old.id', 'kept')}
                      and kept.added_in <= $5::bigint and kept.removed_in + 0 > $5::bigint limit 1)
              then null else old.body end as before,
         null as after
  from record old /* use record_removed */
  where ${ofWorkflow(pick, 'removed', 'old')}
    and (old.removed_in, old.seq) > ($3::bigint, $4::bigint) and old.removed_in <= $5::bigint
  order by old.removed_in, old.seq limit $7`,
);

interface Row extends ChangedRow {
  version: number;
  seq: number;
  told: number;
}

/**
 * The net differences between two versions, each id at most once: a record that came and went in between, or is the
 * same again, is left out; one that was removed and came back is reported as changed. Added and changed records come
 * first, in the order in which they were written, then removed ones. Reads up to `limit` rows and some 8 MiB, so a
 * page may be empty without being the last, whose `next` is null. Both versions must be readable; the caller must
 * check that again afterwards.
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
  const { part, version, seq } = input.after ?? { part: 'written', version: since + 1, seq: 0 };
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
      .map(({ id, told, before, after }) => ({ id, version: told, before, after })),
    next: nextCursor(part, rows.length < limit ? undefined : rows.at(-1), since),
  };
}

/** Leaves out what was added and removed again, and what changed and changed back. */
function isWritten({ before, after }: Row): boolean {
  return after !== null && after !== before;
}

function isRemoved({ before }: Row): boolean {
  return before !== null;
}

/** The length of the longest record of the later version; it never decreases from version to version. */
function bounds(
  view: View,
  input: { teamId: string; workflowId: string; until: number },
): Promise<{ largest: number } | undefined> {
  return view.db.get`
    select greatest(1, largest) as largest
    from version
    where team_id = ${input.teamId} and workflow_id = ${input.workflowId} and number = ${input.until}::bigint`;
}

function nextCursor(part: ChangesCursor['part'], last: Row | undefined, since: number): ChangesCursor | null {
  if (last !== undefined) return { part, version: last.version, seq: last.seq };
  return part === 'written' ? { part: 'removed', version: since + 1, seq: 0 } : null;
}
