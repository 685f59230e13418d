/** Reads what happened to one record in the readable versions of a workflow. */

import type { WorkflowRef } from '../../../model/workflow.ts';
import { both } from '../../sql.ts';
import type { View } from '../../transaction.ts';
import { hasId, inOrder, ofWorkflow } from '../record-indexes.ts';

/** What a version did with a record. */
export interface RecordChange {
  /**
   * `existing` is the oldest state that is stored. The version that wrote it is not readable any more, so that nobody
   * knows whether it added or changed the record.
   */
  type: 'added' | 'changed' | 'removed' | 'existing';
  /** The version; for `existing` the oldest readable one. */
  version: number;
  publishedAt: number;
  jobId: string;
  /** JSON texts of the record before and after the change; null if it did not exist. */
  before: string | null;
  after: string | null;
}

/** Maximum bytes of records that one call returns. */
const MAX_BYTES = 8_388_608;

// A record that was removed and added again has a higher `seq`, so that both databases can read the newest rows first.
// SQLite's index contains `seq` and `added_in`, and the current row is in another index.
const ROWS = both((pick) => {
  const rows = (part: 'current' | 'closed') => `
    select * from (
      select seq, added_in as "addedIn", removed_in as "removedIn", body
      from record /* use record_${part} */
      where ${ofWorkflow(pick, part)} and ${hasId(pick, '$3')} and added_in < $4
        and (removed_in is null or removed_in + 0 > $5)
      order by seq desc, added_in desc limit $6) as ${part}_rows`;
  return `${rows('current')} union all ${rows('closed')} order by 1 desc, 2 desc limit $6`;
});

interface Row {
  seq: number;
  addedIn: number;
  removedIn: number | null;
  body: string;
}

/**
 * Returns the changes of a record, newest first, optionally only those of versions below `before`: at most `limit`, or
 * about 8 MiB. `next` is the value of `before` for the next page; null on the last page. Without any row, no readable
 * version contains the record, or the workflow is unknown.
 */
export async function recordChanges(
  view: View,
  input: WorkflowRef & { recordId: string; before?: number | undefined; limit: number },
): Promise<{ rows: RecordChange[]; next: number | null }> {
  const { teamId, workflowId, recordId } = input;
  return view.db.snapshot(async (db) => {
    const workflow = await db.get<{ current: number; oldest: number; largest: number }>`
      select current_version as current, oldest_version as oldest, greatest(1, coalesce(largest, 1)) as largest
      from workflow
      left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
        and version.number = workflow.current_version
      where workflow.team_id = ${teamId} and workflow.id = ${workflowId} and archived_at is null`;
    if (workflow === undefined) return { rows: [], next: null };
    const { current, oldest, largest } = workflow;
    const limit = Math.max(1, Math.min(input.limit, Math.floor(MAX_BYTES / (2 * largest))));
    // The row after the last one is the state before the last change.
    const asked = limit + 1;
    const before = Math.min(input.before ?? current + 1, current + 1);
    await inOrder(db);
    const rows = await db.all<Row>(ROWS, teamId, workflowId, recordId, before, oldest, asked);
    const changes = changesOf(rows, { before, oldest, isWhole: rows.length < asked });
    const shown = changes.slice(0, limit);
    const dated = await dates(db, input, shown);
    const isLast = rows.length < asked && changes.length <= limit;
    return { rows: dated, next: isLast ? null : (shown.at(-1)?.version ?? null) };
  });
}

type Undated = Omit<RecordChange, 'publishedAt' | 'jobId'>;

/** @param range.isWhole whether there is no row before the last one */
function changesOf(
  rows: readonly Row[],
  { before, oldest, isWhole }: { before: number; oldest: number; isWhole: boolean },
): Undated[] {
  return (isWhole ? rows : rows.slice(0, -1)).flatMap((row, place) => {
    const { addedIn, removedIn, body } = row;
    const changes: Undated[] = [];
    if (removedIn !== null && removedIn < before && rows[place - 1]?.addedIn !== removedIn) {
      changes.push({ type: 'removed', version: removedIn, before: body, after: null });
    }
    const replaced = rows[place + 1]?.removedIn === addedIn ? (rows[place + 1]?.body ?? null) : null;
    // Version 1 changes nothing, and no row was closed before it.
    if (addedIn <= oldest && oldest > 1) {
      changes.push({ type: 'existing', version: oldest, before: null, after: body });
    } else {
      const type = replaced === null ? 'added' : 'changed';
      changes.push({ type, version: addedIn, before: replaced, after: body });
    }
    return changes;
  });
}

/** Adds when each version was published, and by which job. */
async function dates(
  db: View['db'],
  { teamId, workflowId }: WorkflowRef,
  changes: readonly Undated[],
): Promise<RecordChange[]> {
  const numbers = changes.map(({ version }) => version);
  const versions = await db.all<{ number: number; publishedAt: number; jobId: string }>`
    select number, published_at as "publishedAt", job_id as "jobId" from version
    where team_id = ${teamId} and workflow_id = ${workflowId} and number = any(${numbers}::bigint[])`;
  const byNumber = new Map(versions.map(({ number, ...of }) => [number, of]));
  return changes.flatMap((change) => {
    const of = byNumber.get(change.version);
    return of === undefined ? [] : [{ ...change, ...of }];
  });
}
