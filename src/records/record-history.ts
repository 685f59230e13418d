/** What happened to one record, version by version, for readers. */

import { found } from '../model/error.ts';
import { type Difference, differenceOf, exactRecord } from '../model/same-json.ts';
import type { Compare, WorkflowRef } from '../model/workflow.ts';
import { ownTurn } from '../std/fair-share.ts';
import type { RecordChange } from '../store/operations/history/record-history.ts';
import type { Store } from '../store/store.ts';
import { COMPARED_CHARACTERS } from './read-changes.ts';

/** A change with the values of the record: `record` if it appeared, `fields` if it was changed or removed. */
export interface ShownChange extends Pick<RecordChange, 'type' | 'version' | 'publishedAt' | 'jobId'> {
  record?: ExistingRecord;
  fields?: Difference['fields'];
}

type ExistingRecord = Record<string, unknown> & { id: string };

/**
 * Returns a page of the changes of a record, newest first. `next` is the value of `before` for the next page; null on the
 * last page.
 *
 * @throws Problem `workflow_not_found`; `record_not_found` if no stored version contains the record
 */
export async function readRecordHistory(
  store: Store,
  place: WorkflowRef,
  page: { recordId: string; before?: number | undefined; limit: number },
): Promise<{ rows: ShownChange[]; next: number | null }> {
  const { teamId, workflowId } = place;
  const { definition } = found(await store.workflows.get({ teamId, id: workflowId }), 'workflow_not_found');
  const { rows, next } = await store.records.recordChanges({ ...place, ...page });
  if (rows.length === 0 && page.before === undefined) found(undefined, 'record_not_found');
  const shown: ShownChange[] = [];
  let compared = 0;
  for (const row of rows) {
    if (compared > COMPARED_CHARACTERS) {
      compared = 0;
      await ownTurn(teamId);
    }
    shown.push(shownChange(row, page.recordId, definition.compare ?? 'value'));
    compared += (row.before?.length ?? 0) + (row.after?.length ?? 0);
  }
  return { rows: shown, next };
}

function shownChange({ before, after, ...change }: RecordChange, id: string, compare: Compare): ShownChange {
  if (before === null) {
    return { ...change, record: exactRecord(after ?? undefined, compare) as ExistingRecord };
  }
  return { ...change, fields: differenceOf({ id, before, after: after ?? undefined }, compare).fields };
}
