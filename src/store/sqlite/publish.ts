/** Publishing: the one small transaction that makes a run's records visible and ends its job. */
import { changesUrl, publishedData } from '../../model/event.ts';
import { mergeFields } from '../../model/fields.ts';
import { guardMistake } from '../../model/guards.ts';
import type { RecordCounts } from '../../model/job.ts';
import { PUBLISHED, type PublishedSizes, publishMistake } from '../../model/quota.ts';
import { type ChangedRecord, differences } from '../../model/record-difference.ts';
import type { Definition } from '../../model/workflow.ts';
import type { JobRow } from '../job-row.ts';
import type { Published, RecordOperations } from '../record-operations.ts';
import { bytesAfter, countRecords } from '../workflow-row.ts';
import { endCanceled } from './cancel.ts';
import { appendJobEvent, heldJob, moveUp } from './jobs.ts';
import { countBytes, publishedBeside, quotaOf } from './quotas.ts';
import type { Tx } from './transaction.ts';
import { type WorkflowRow, workflowRow } from './workflows.ts';

/** How many changed records an event lists at most; its body stays under 20 kB in any case. */
const MAX_DIFFERENCES = 100;
/** How many of them are read at a time: each may be 1 MiB long. */
const DIFFERENCES_STEP = 10;

type PublishInput = Parameters<RecordOperations['publish']>[0];

export function publish(tx: Tx, { held, guards, state, fields, mode }: PublishInput): Published {
  const job = heldJob(tx, held);
  if (job.cancel_requested_at !== null) {
    endCanceled(tx, { held });
    return { outcome: 'canceled' };
  }
  const workflow = workflowRow(tx, job.team_id, job.workflow_id) as WorkflowRow;
  const before = publishedVersion(tx, workflow);
  const records = countRecords(workflow, before.total);
  const bytesBefore = before.bytes ?? countBytes(tx, workflow, before.total);
  const bytes = bytesAfter(workflow, bytesBefore);
  const error =
    guardMistake({ guards, before: before.total, after: records.total }) ??
    quotaMistake(tx, workflow, {
      records: { before: before.total, after: records.total },
      storedBytes: { before: bytesBefore, after: bytes },
    });
  if (error !== undefined) return { outcome: 'guarded', error };

  const changed = records.added + records.changed + records.removed > 0;
  const version = changed ? workflow.current_version + 1 : workflow.current_version;
  if (changed) {
    const inMode = mode ?? (JSON.parse(workflow.definition) as Definition).mode;
    const kept: string[] = inMode === 'replace' ? [] : JSON.parse(before.fields);
    insertVersion(tx, {
      job,
      workflow,
      version,
      records,
      largest: Math.max(before.largest, workflow.staged_largest),
      bytes,
      fields: mergeFields(kept, fields),
    });
  }
  tx.db.run(
    `update workflow
     set current_version = ?, state = coalesce(?, state),
         staged_added = 0, staged_changed = 0, staged_removed = 0, staged_largest = 0, staged_bytes = 0
     where number = ?`,
    version,
    state === undefined ? null : JSON.stringify(state),
    workflow.number,
  );
  const finished = finish(tx, job, version, records);
  const published = publishedData({ publicUrl: tx.publicUrl, workflowId: workflow.id, version, records });
  if (changed) {
    const previousVersion = workflow.current_version;
    appendJobEvent(tx, finished, 'workflow_data_change', {
      ...published,
      previousVersion,
      ...listDifferences(tx, workflow, records),
      changesUrl: changesUrl({ publicUrl: tx.publicUrl, workflowId: workflow.id, previousVersion, version }),
    });
  }
  appendJobEvent(tx, finished, 'workflow_finished', published);
  moveUp(tx, finished);
  return { outcome: changed ? 'published' : 'unchanged', version, records };
}

function quotaMistake(tx: Tx, { team_id, id }: WorkflowRow, sizes: PublishedSizes): string | undefined {
  for (const quota of PUBLISHED) {
    const { before, after } = sizes[quota];
    const most = (after ?? 0) > (before ?? 0) ? quotaOf(tx, team_id, quota) : null;
    if (most === null) continue;
    const others = publishedBeside(tx, quota, team_id, id);
    const mistake = publishMistake({ quota, most, others, before: before ?? 0, after: after ?? 0 });
    if (mistake !== undefined) return mistake;
  }
  return undefined;
}

interface VersionSizes {
  total: number;
  largest: number;
  /** Null if not counted yet. */
  bytes: number | null;
  fields: string;
}

function publishedVersion(tx: Tx, workflow: WorkflowRow): VersionSizes {
  const row = tx.db.get<VersionSizes>(
    'select total, largest, bytes, fields from version where team_id = ? and workflow_id = ? and number = ?',
    workflow.team_id,
    workflow.id,
    workflow.current_version,
  );
  return row ?? { total: 0, largest: 0, bytes: 0, fields: '[]' };
}

function insertVersion(
  tx: Tx,
  input: {
    job: JobRow;
    workflow: WorkflowRow;
    version: number;
    records: RecordCounts;
    largest: number;
    bytes: number | null;
    fields: readonly string[];
  },
): void {
  const { job, workflow, version, records } = input;
  tx.db.run(
    `insert into version
       (team_id, workflow_id, number, job_id, total, added, changed, removed, largest, bytes, fields, published_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    workflow.team_id,
    workflow.id,
    version,
    job.id,
    records.total,
    records.added,
    records.changed,
    records.removed,
    input.largest,
    input.bytes,
    JSON.stringify(input.fields),
    tx.now,
  );
}

function finish(tx: Tx, job: JobRow, version: number, records: RecordCounts): JobRow {
  return tx.db.get<JobRow>(
    `update job
     set state = 'finished', finished_at = ?, version = ?, records = ?, reason = null, error = null,
         progress = json_set(progress, '$.message', null),
         node_id = null, lease_until = null, process_pid = null, process_started_at = null
     where team_id = ? and id = ? returning *`,
    tx.now,
    version,
    JSON.stringify(records),
    job.team_id,
    job.id,
  ) as JobRow;
}

function listDifferences(
  tx: Tx,
  workflow: WorkflowRow,
  records: RecordCounts,
): ReturnType<typeof differences> {
  const listed = differences(changedRecords(tx, workflow));
  const all = records.added + records.changed + records.removed;
  return { ...listed, truncated: listed.differences.length < all };
}

interface DifferenceRow {
  seq: number;
  id: string;
  before: string | null;
  after: string | null;
}

// Names the indexes, because the planner would scan the whole workflow in the order of `seq`.
const WRITTEN = `
  select new.seq, new.id, old.body as before, new.body as after
  from record new indexed by record_added
  left join record old on old.workflow = new.workflow and old.seq = new.seq and old.removed_in = new.added_in
  where new.workflow = ? and new.added_in = ? and new.seq > ?
  order by new.seq limit ?`;
const REMOVED = `
  select old.seq, old.id, old.body as before, null as after
  from record old indexed by record_removed
  where old.workflow = ? and old.removed_in = ? and old.seq > ?
    and not exists (select 1 from record new
                    where new.workflow = old.workflow and new.seq = old.seq and new.added_in = old.removed_in)
  order by old.seq limit ?`;

/** The first 100 changed records, read a few at a time: added and changed ones by `seq`, then removed ones. */
function* changedRecords(tx: Tx, { number, current_version }: WorkflowRow): Generator<ChangedRecord> {
  const version = current_version + 1;
  let left = MAX_DIFFERENCES;
  for (const sql of [WRITTEN, REMOVED]) {
    let afterSeq = 0;
    while (left > 0) {
      const limit = Math.min(left, DIFFERENCES_STEP);
      const rows = tx.db.all<DifferenceRow>(sql, number, version, afterSeq, limit);
      yield* rows.map(toChangedRecord);
      left -= rows.length;
      afterSeq = rows.at(-1)?.seq ?? afterSeq;
      if (rows.length < limit) break;
    }
  }
}

function toChangedRecord({ id, before, after }: DifferenceRow): ChangedRecord {
  return { id, before: before ?? undefined, after: after ?? undefined };
}
