/**
 * The differences between two versions, found by the indexes over `added_in` and `removed_in`.
 *
 * A row that was added in between and is visible at the later version is a record added or changed; no id has two of
 * them. A row that is visible at the earlier version, was closed in between, and whose id has no row at the later
 * one is a record removed. Each call reads on in one of the two indexes.
 */
import type { ChangedRow, ChangesCursor, RecordOperations } from '../record-operations.ts';
import type { View } from './transaction.ts';

/** Bytes of records that one call may return, `before` and `after` together. */
const MAX_BYTES = 8_388_608;

// Names the indexes, because the planner would scan the whole workflow in the order of `seq`. `reported` is the version
// that is reported.
const WRITTEN = `
  select new.added_in as version, new.seq, new.id, new.added_in as reported,
         (select old.body from record old indexed by record_closed
          where old.workflow = new.workflow and old.id = new.id and old.removed_in is not null
            and old.added_in <= ? and old.removed_in > ?) as before,
         iif(new.removed_in is null or new.removed_in > ?, new.body, null) as after
  from record new indexed by record_added
  where new.workflow = ? and (new.added_in, new.seq) > (?, ?) and new.added_in <= ?
  order by new.added_in, new.seq limit ?`;
const REMOVED = `
  select old.removed_in as version, old.seq, old.id,
         (select max(removed_in) from record last indexed by record_closed
          where last.workflow = old.workflow and last.id = old.id and last.removed_in <= ?) as reported,
         iif(old.added_in > ?
               or exists (select 1 from record kept
                          where kept.workflow = old.workflow and kept.id = old.id and kept.removed_in is null
                            and kept.added_in <= ?)
               or exists (select 1 from record kept indexed by record_closed
                          where kept.workflow = old.workflow and kept.id = old.id
                            and kept.added_in <= ? and kept.removed_in > ?),
             null, old.body) as before,
         null as after
  from record old indexed by record_removed
  where old.workflow = ? and (old.removed_in, old.seq) > (?, ?) and old.removed_in <= ?
  order by old.removed_in, old.seq limit ?`;

interface Row extends ChangedRow {
  version: number;
  seq: number;
  reported: number;
}

export function changes(
  view: View,
  input: Parameters<RecordOperations['changes']>[0],
): { rows: ChangedRow[]; next: ChangesCursor | null } {
  const { since, until } = input;
  const found = bounds(view, input);
  if (found === undefined) return { rows: [], next: null };
  const limit = Math.max(1, Math.min(input.limit, Math.floor(MAX_BYTES / (2 * found.largest))));
  const { part, version, seq } = input.after ?? { part: 'written', version: since + 1, seq: 0 };
  const walk = [found.number, version, seq, until, limit];
  const rows =
    part === 'written'
      ? view.db.all<Row>(WRITTEN, since, since, until, ...walk)
      : view.db.all<Row>(REMOVED, until, since, until, until, until, ...walk);
  return {
    rows: rows
      .filter(part === 'written' ? isWritten : isRemoved)
      .map(({ id, reported, before, after }) => ({ id, version: reported, before, after })),
    next: nextCursor(part, rows.length < limit ? undefined : rows.at(-1), since),
  };
}

/** False for a record that came and went, or changed and changed back. */
function isWritten({ before, after }: Row): boolean {
  return after !== null && after !== before;
}

function isRemoved({ before }: Row): boolean {
  return before !== null;
}

/** The workflow's number, and the length of the longest record up to the later version (`largest` never shrinks). */
function bounds(
  view: View,
  input: { teamId: string; workflowId: string; until: number },
): { number: number; largest: number } | undefined {
  return view.db.get(
    `select workflow.number, max(1, version.largest) as largest
     from workflow
     join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
     where workflow.team_id = ? and workflow.id = ? and version.number = ?`,
    input.teamId,
    input.workflowId,
    input.until,
  );
}

function nextCursor(part: ChangesCursor['part'], last: Row | undefined, since: number): ChangesCursor | null {
  if (last !== undefined) return { part, version: last.version, seq: last.seq };
  return part === 'written' ? { part: 'removed', version: since + 1, seq: 0 } : null;
}
