/** Publishing: the short transaction that makes a run's records visible and ends its job. */

import { changesUrl, publishedData } from '../../model/event.ts';
import type { AttemptLease, LogLine, Progress, RecordCounts } from '../../model/job.ts';
import { mergeFields } from '../../model/planned-writes.ts';
import { isOfSchema } from '../../model/quality/drift.ts';
import { type JobFinding, MAX_FINDINGS } from '../../model/quality/expect.ts';
import { type Expected, findingsSentence, fittingFindings, judge } from '../../model/quality/judge.ts';
import type { Profile } from '../../model/quality/profile.ts';
import { PUBLISHED, type PublishedSizes, publishMistake } from '../../model/quota.ts';
import {
  type ChangedRecord,
  type Difference,
  differenceOf,
  MAX_DIFFERENCES_BYTES,
} from '../../model/same-json.ts';
import type { Compare, Definition, Mode } from '../../model/workflow.ts';
import { toIso } from '../../std/clock.ts';
import { JOB, type JobRow, type WorkflowRow } from '../rows.ts';
import { both } from '../sql.ts';
import type { Tx } from '../transaction.ts';
import { endCanceled, reported, withoutMessage } from './attempts.ts';
import { append, setProgress, stored } from './job-log.ts';
import { appendJobEvent, lockHeld, moveUp } from './jobs.ts';
import { touchFreshness } from './quality/freshness.ts';
import { addProfile } from './quality/profiles.ts';
import { publishedBeside, quotaOf } from './quotas.ts';
import { inOrder, inWorkflow, ofWorkflow } from './record-indexes.ts';

/** What the records of a run look like, and how they differ from those of earlier runs. */
export interface Observed {
  profile: Profile;
  drifts?: readonly JobFinding[];
}

export type Published =
  /** `findings` are missing if the run met all expectations. */
  | { outcome: 'published' | 'unchanged'; version: number; records: RecordCounts; findings?: JobFinding[] }
  /**
   * An expectation or a quota prevented publishing, and nothing was changed. `error` names it, and explains why.
   */
  | { outcome: 'guarded'; error: string }
  /** Cancellation of the job had been requested. The job has ended as canceled, and nothing was published. */
  | { outcome: 'canceled' };

/** Maximum number of changed records listed in an event. The body of the event stays under 20 kB in any case. */
const MAX_DIFFERENCES = 100;
/** Maximum sizes of the findings of a job, and in an event. */
const MAX_STORED_FINDINGS_BYTES = 64_000;
const MAX_FINDINGS_BYTES = 10_000;
/** Number of records fetched at a time. It is small, because each record may have 1 MiB. */
const DIFFERENCES_STEP = 10;

/**
 * Ends a successful attempt: makes the next version current if any record changed, finishes the job, and stores the
 * incremental state. The cost does not depend on the number of records written. Events: `workflow_data_change` if any
 * record changed, `workflow_schema_changed` and `workflow_expectation_failed` if there are findings, `workflow_finished`, then `workflow_recovered` if
 * the workflow was stale.
 *
 * `fields` are the field names of the run's records, in order of first appearance. In the modes `upsert` and `append`,
 * they are added to the field names of the previous version. `mode` defaults to the mode in the workflow's definition.
 * Without `expected`, nothing is expected of the records. A new version keeps the profile of `observed`. `lines` and
 * `progress` are the last report of the attempt, which is stored with any outcome.
 */
export async function publish(
  tx: Tx,
  input: {
    held: AttemptLease;
    expected?: Expected;
    observed?: Observed;
    /** JSON text; undefined keeps the state of the previous run. */
    state: string | undefined;
    fields: readonly string[];
    mode?: Mode;
    /** Number of records that were accepted from the quarantine, for the audit log. */
    accepted?: number | undefined;
    lines?: readonly LogLine[];
    progress?: Progress;
  },
): Promise<Published> {
  const { held, expected, observed, state, fields, mode, accepted, lines = [], progress } = input;
  const [locked, chunks] = await Promise.all([
    lockHeld(tx, held),
    lines.length === 0 ? [] : stored(tx, held),
    inOrder(tx.db),
  ]);
  const { workflow } = locked;
  const job = reported(locked.job, progress);
  await append(tx, held, chunks, lines);
  if (job.cancelRequestedAt !== null) {
    await endCanceled(tx, progress === undefined ? { held } : { held, progress });
    return { outcome: 'canceled' };
  }
  const before = await publishedVersion(tx, workflow);
  // The counts come from the counters that staging updates. Counting the rows of a large run here would block every
  // write.
  const { stagedAdded: added, stagedChanged, stagedRemoved: removed } = workflow;
  const records = { total: before.total + added - removed, added, changed: stagedChanged, removed };
  const bytes = before.bytes === null ? null : before.bytes + workflow.stagedBytes;
  const definition = JSON.parse(workflow.definition) as Definition;
  const inMode = mode ?? definition.mode;
  const sizes = { mode: inMode, before: before.total, after: records.total };
  const judgment = expected === undefined ? undefined : judge(expected, sizes);
  const error =
    judgment?.error ??
    (await quotaMistake(tx, workflow, {
      records: { before: before.total, after: records.total },
      storedBytes: { before: before.bytes, after: bytes },
    }));
  const failed = fittingFindings(judgment?.findings ?? [], MAX_STORED_FINDINGS_BYTES).findings;
  if (error !== undefined) {
    if (failed.length > 0) await setFindings(tx, held, failed);
    if (progress !== undefined) await setProgress(tx, held, progress);
    return { outcome: 'guarded', error };
  }

  const changed = records.added + records.changed + records.removed > 0;
  const version = changed ? workflow.currentVersion + 1 : workflow.currentVersion;
  // Accepted records are not news from the source.
  const isNews = accepted === undefined;
  const listed = changed ? await listDifferences(tx, workflow, records, definition.compare) : undefined;
  if (changed) {
    const kept: string[] = inMode === 'replace' ? [] : JSON.parse(before.fields);
    await tx.db.run`
      insert into version (team_id, workflow_id, number, job_id, total, added, changed, removed, largest, bytes,
        replaced_bytes, fields, published_at)
      values (${workflow.teamId}, ${workflow.id}, ${version}, ${job.id}, ${records.total}, ${added},
        ${records.changed}, ${removed}, ${Math.max(before.largest, workflow.stagedLargest)}, ${bytes},
        ${(before.replaced ?? 0) + workflow.stagedReplaced}, ${JSON.stringify(mergeFields(kept, fields))}, ${tx.now})`;
    if (observed !== undefined && isNews) {
      const at = { teamId: workflow.teamId, workflowId: workflow.id };
      await addProfile(tx, { ...at, version, jobId: job.id, mode: inMode, profile: observed.profile });
    }
  }
  const { stagedQuarantined: quarantined } = workflow;
  const hasAside = quarantined + workflow.stagedReleased > 0;
  const isWatched = workflow.freshMs !== null && isNews;
  if (changed || state !== undefined || workflow.stagedLargest > 0 || hasAside || isWatched)
    await moveOn(
      tx,
      workflow,
      { version, quarantineRun: workflow.quarantineRun + (hasAside ? 1 : 0), isNews },
      state,
    );
  const unmet = [...failed, ...(changed && isNews ? beside(failed, observed?.drifts) : [])].slice(
    0,
    MAX_FINDINGS,
  );
  const findings = unmet.length === 0 ? null : unmet;
  const finished = await finish(tx, job, { version, records, quarantined, findings });
  await moveUp(tx, finished);
  const published = publishedData({
    publicUrl: tx.publicUrl,
    workflowId: workflow.id,
    version,
    records,
    quarantined,
  });
  if (changed) {
    const previousVersion = workflow.currentVersion;
    appendJobEvent(tx, finished, 'workflow_data_change', {
      ...published,
      previousVersion,
      ...listed,
      changesUrl: changesUrl({ publicUrl: tx.publicUrl, workflowId: workflow.id, previousVersion, version }),
    });
  }
  const ofSchema = unmet.filter(isOfSchema);
  for (const [type, some] of [
    ['workflow_schema_changed', ofSchema],
    ['workflow_expectation_failed', unmet.filter((finding) => !ofSchema.includes(finding))],
  ] as const) {
    if (some.length === 0) continue;
    const error = findingsSentence(some);
    appendJobEvent(tx, finished, type, { ...published, error, ...fittingFindings(some, MAX_FINDINGS_BYTES) });
  }
  appendJobEvent(tx, finished, 'workflow_finished', published);
  if (workflow.staleSince !== null && isNews) {
    const staleSince = toIso(workflow.staleSince);
    appendJobEvent(tx, finished, 'workflow_recovered', { ...published, staleSince });
  }
  return {
    outcome: changed ? 'published' : 'unchanged',
    version,
    records,
    ...(findings === null ? {} : { findings }),
  };
}

/**
 * Stores the current version, the incremental state and when the workflow becomes stale, and resets the counters of
 * staging. Not called if there is nothing to store, because each update leaves a dead row, which slows down later locks
 * of the workflow.
 */
async function moveOn(
  tx: Tx,
  workflow: WorkflowRow,
  { version, quarantineRun, isNews }: { version: number; quarantineRun: number; isNews: boolean },
  state: string | undefined,
): Promise<void> {
  await tx.db.run`
    update workflow
    set current_version = ${version}, quarantine_run = ${quarantineRun},
      state = coalesce(${state ?? null}, state),
      staged_added = 0, staged_changed = 0, staged_removed = 0, staged_largest = 0, staged_bytes = 0,
      staged_quarantined = 0, staged_released = 0, staged_replaced = 0,
      fresh_due_at = case when ${isNews} then ${tx.now} + fresh_ms else fresh_due_at end,
      stale_since = case when ${isNews} then null else stale_since end
    where team_id = ${workflow.teamId} and id = ${workflow.id}`;
  if (workflow.freshMs !== null && isNews) touchFreshness(tx, workflow.teamId, tx.now + workflow.freshMs);
}

async function quotaMistake(
  tx: Tx,
  { teamId, id }: WorkflowRow,
  sizes: PublishedSizes,
): Promise<string | undefined> {
  for (const quota of PUBLISHED) {
    const { before, after } = sizes[quota];
    const most = (after ?? 0) > (before ?? 0) ? await quotaOf(tx, teamId, quota) : null;
    if (most === null) continue;
    const others = await publishedBeside(tx, quota, teamId, id);
    const mistake = publishMistake({ quota, most, others, before: before ?? 0, after: after ?? 0 });
    if (mistake !== undefined) return mistake;
  }
  return undefined;
}

interface VersionSizes {
  total: number;
  largest: number;
  /** Null if not counted. */
  bytes: number | null;
  /** Bytes of all records that this version and earlier ones have closed; null if not counted. */
  replaced: number | null;
  fields: string;
}

async function publishedVersion(tx: Tx, workflow: WorkflowRow): Promise<VersionSizes> {
  const row = await tx.db.get<VersionSizes>`
    select total, largest, bytes, replaced_bytes as replaced, fields from version where team_id = ${workflow.teamId}
      and workflow_id = ${workflow.id} and number = ${workflow.currentVersion}`;
  return row ?? { total: 0, largest: 0, bytes: 0, replaced: 0, fields: '[]' };
}

/** The drifts of fields, or of the run, about which no expectation has found anything. */
function beside(failed: readonly JobFinding[], drifts: readonly JobFinding[] = []): JobFinding[] {
  const subjects = new Set(failed.map(subjectOf));
  return drifts.filter((drift) => !subjects.has(subjectOf(drift)));
}

function subjectOf({ field, expectation }: JobFinding): string {
  return JSON.stringify(field ?? [expectation.endsWith('duplicates')]);
}

/** Stores the findings of a run that publishes nothing. Its job ends in another transaction. */
async function setFindings(tx: Tx, held: AttemptLease, findings: readonly JobFinding[]): Promise<void> {
  await tx.db.run`
    update job set findings = ${JSON.stringify(findings)}
    where team_id = ${held.teamId} and id = ${held.jobId}`;
}

async function finish(
  tx: Tx,
  job: JobRow,
  {
    version,
    records,
    quarantined,
    findings,
  }: { version: number; records: RecordCounts; quarantined: number; findings: JobFinding[] | null },
): Promise<JobRow> {
  return (await tx.db.get<JobRow>`
    update job
    set state = 'finished', finished_at = ${tx.now}, version = ${version},
      records = ${JSON.stringify(records)}, quarantined = ${quarantined}, reason = null, error = null,
        findings = ${findings === null ? null : JSON.stringify(findings)},
        progress = ${withoutMessage(job.progress)}, node_id = null,
        lease_until = null, process_pid = null, process_started_at = null
    where team_id = ${job.teamId} and id = ${job.id} returning ${JOB}`) as JobRow;
}

/** Lists the differences of the first 100 changed records, but only as many as fit into an event's body. */
async function listDifferences(
  tx: Tx,
  workflow: WorkflowRow,
  records: RecordCounts,
  compare: Compare | undefined,
): Promise<{ differences: Difference[]; truncated: boolean }> {
  const list: Difference[] = [];
  let bytes = 0;
  for await (const record of changedRecords(tx, workflow)) {
    const difference = differenceOf(record, compare);
    bytes += Buffer.byteLength(JSON.stringify(difference)) + 1;
    if (bytes > MAX_DIFFERENCES_BYTES) break;
    list.push(difference);
  }
  const all = records.added + records.changed + records.removed;
  return { differences: list, truncated: list.length < all };
}

interface DifferenceRow {
  seq: number;
  id: string;
  before: string | null;
  after: string | null;
}

// A subquery looks up each record's row in the other version. Its `limit` keeps the planner from turning it into a
// join.
const WRITTEN = both(
  (pick) => `
  select new.seq, new.id, new.body as after,
         (select old.body from record old
          where ${inWorkflow(pick, 'old')} and old.seq = new.seq and old.added_in < $3
          order by old.added_in desc limit 1) as before
  from record new /* use record_added */
  where ${ofWorkflow(pick, 'added', 'new')} and new.added_in = $3 and new.seq > $4
  order by new.seq limit $5`,
);
const REMOVED = both(
  (pick) => `
  select old.seq, old.id, old.body as before, null as after
  from record old /* use record_removed */
  where ${ofWorkflow(pick, 'removed', 'old')} and old.removed_in = $3 and old.seq > $4
    and (select true from record new
         where ${inWorkflow(pick, 'new')} and new.seq = old.seq and new.added_in = $3
         limit 1) is null
  order by old.seq limit $5`,
);

/**
 * Yields the first 100 changed records, fetching a few at a time: first added and changed records by `seq`, then
 * removed ones.
 */
async function* changedRecords(
  tx: Tx,
  { teamId, id: workflowId, currentVersion }: WorkflowRow,
): AsyncGenerator<ChangedRecord> {
  const version = currentVersion + 1;
  let left = MAX_DIFFERENCES;
  for (const sql of [WRITTEN, REMOVED]) {
    let afterSeq = 0;
    while (left > 0) {
      const limit = Math.min(left, DIFFERENCES_STEP);
      const rows = await tx.db.all<DifferenceRow>(sql, teamId, workflowId, version, afterSeq, limit);
      for (const { id, before, after } of rows) {
        yield { id, before: before ?? undefined, after: after ?? undefined };
      }
      left -= rows.length;
      afterSeq = rows.at(-1)?.seq ?? afterSeq;
      if (rows.length < limit) break;
    }
  }
}
