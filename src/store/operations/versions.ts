/** The versions of a workflow: their numbers, counts and sizes, and deleting old ones. */

import type { RecordCounts } from '../../model/job.ts';
import type { WorkflowRef } from '../../model/workflow.ts';
import { earlier } from '../../std/earlier.ts';
import type { Page } from '../page.ts';
import type { WorkflowRow } from '../rows.ts';
import { both, inParts, isFull, MAX_BATCH_BYTES } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { inOrder, ofWorkflow } from './record-indexes.ts';
import { oldestPending } from './rules/decisions.ts';
import { lockWorkflow } from './workflows.ts';

/**
 * Determines which versions are kept, unless the definition of the workflow has other limits (`keep`). The current version is always kept. Any other version is kept if it is within
 * both limits, or if it was superseded less than `graceMs` ago, or since the oldest event with a pending decision.
 */
export interface Retention {
  /** Maximum number of versions, including the current one. */
  keepVersions: number;
  /** Maximum time since the version was superseded. */
  keepMs: number;
  /** A version superseded less than this time ago is always kept. */
  graceMs: number;
}

export interface VersionSummary {
  number: number;
  jobId: string;
  publishedAt: number;
  records: RecordCounts;
}

export interface DataVersion {
  /** 0 before the first published run. */
  number: number;
  oldest: number;
  /** Number of readable versions. */
  versions: number;
  /** Number of records. */
  total: number;
  /** An upper bound for the size of the version's longest record, in bytes. */
  largest: number;
  /** The total size of the version's records, in bytes; null if the size was not counted. */
  bytes: number | null;
  /**
   * How often records of the workflow have been erased. Together with `number`, this count identifies the version's
   * content.
   */
  erasures: number;
  /**
   * The field names of the version's records, in order of first appearance. The list may include names that no record
   * has.
   */
  fields: string[];
}

/**
 * Returns the current version or, if given, the version `number`. Returns undefined if the workflow is unknown or the
 * version is not readable; readable versions are those from `oldest` to the current one.
 */
export async function version(
  view: View,
  { teamId, workflowId, number }: { teamId: string; workflowId: string; number?: number | undefined },
): Promise<DataVersion | undefined> {
  // Version 0 is empty and has no row.
  const row = await view.db.get<Omit<DataVersion, 'fields'> & { fields: string }>(
    `select coalesce($3::bigint, workflow.current_version) as number, workflow.oldest_version as oldest,
            workflow.current_version - workflow.oldest_version + 1 as versions, workflow.erasures, coalesce(version.total, 0) as total, coalesce(version.largest, 0) as largest, version.bytes,
            coalesce(version.fields, '[]') as fields
     from workflow
     left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                      and version.number = coalesce($3::bigint, workflow.current_version)
     where workflow.team_id = $1 and workflow.id = $2 and workflow.archived_at is null
       and coalesce($3::bigint, workflow.current_version)
           between workflow.oldest_version and workflow.current_version`,
    teamId,
    workflowId,
    number ?? null,
  );
  return row && { ...row, fields: JSON.parse(row.fields) };
}

/** Maximum number of versions that one statement reads to find the version of a time. */
const COMPARED_VERSIONS = 100;

/**
 * Returns the number of the newest readable version that was published at or before `at`; null if all were published
 * later. Versions are published in the order of their numbers, so that the search looks only at a few of them. (An
 * index by time would cost each publication an entry.)
 */
export async function versionAt(
  view: View,
  { teamId, workflowId, at }: WorkflowRef & { at: number },
): Promise<number | null> {
  const range = await view.db.get<{ oldest: number; current: number }>`
    select oldest_version as oldest, current_version as current from workflow
    where team_id = ${teamId} and id = ${workflowId} and archived_at is null`;
  if (range === undefined) return null;
  let found: number | null = null;
  let [first, last] = [Math.max(1, range.oldest), range.current];
  while (first <= last) {
    const step = Math.ceil((last - first + 1) / COMPARED_VERSIONS);
    const numbers = Array.from({ length: Math.ceil((last - first + 1) / step) }, (_, n) => first + n * step);
    const published = await view.db.all<{ number: number }>`
      select number from version
      where team_id = ${teamId} and workflow_id = ${workflowId} and number = any(${numbers}::bigint[])
        and published_at <= ${at}`;
    const newest = published.reduce((most, { number }) => Math.max(most, number), first - 1);
    if (newest < first) break;
    found = newest;
    last = Math.min(last, newest + step - 1);
    first = newest + 1;
  }
  return found;
}

type Summary = Omit<VersionSummary, 'records'> & VersionSummary['records'];

/**
 * Lists the readable versions except version 0, newest first, optionally only versions below `before`. The list is
 * empty for an unknown workflow.
 */
export async function versions(
  view: View,
  input: { teamId: string; workflowId: string; limit: number; before?: number },
): Promise<VersionSummary[]> {
  const rows = await view.db.all<Summary>`
    select version.number, job_id as "jobId", published_at as "publishedAt", total, added, changed, removed
    from version
    join workflow on workflow.team_id = version.team_id and workflow.id = version.workflow_id
    where version.team_id = ${input.teamId} and version.workflow_id = ${input.workflowId}
      and version.number >= workflow.oldest_version
      and version.number < ${input.before ?? Number.MAX_SAFE_INTEGER}::bigint
      and workflow.archived_at is null
    order by version.number desc limit ${input.limit}`;
  return rows.map(({ number, jobId, publishedAt, ...records }) => ({ number, jobId, publishedAt, records }));
}

// Pruning deletes superseded versions. It first increases `oldest_version`, so that older versions can no longer be
// read. It then deletes the rows that no readable version contains, in small steps, and finally sets `pruned_version`
// to `oldest_version`.

/**
 * Reads the next `limit` workflows of a team, and returns those from which `prune` can delete something. `next` is null
 * after the last workflow. `at` is when `prune` can next delete something from one of the others.
 *
 * A version may be deleted if the version after it was published long enough ago.
 */
export async function prunable(
  view: View,
  { teamId, after = '', limit, ...kept }: Retention & Page & { teamId: string },
): Promise<{ found: WorkflowRef[]; next: string | null; at: number | null }> {
  const neededAt = await oldestPending(view, { teamId });
  const rows = await view.db.all<PrunableRow>`
    select id, pruned_version < oldest_version as "isPruning",
           oldest_version <= current_version - coalesce(keep_versions, ${kept.keepVersions}::bigint) as "isOver",
           coalesce(keep_ms, ${kept.keepMs}::bigint) as "keepMs",
           (select next.published_at from version next
            where next.team_id = ${teamId} and next.workflow_id = workflow.id
              and next.number = oldest_version + 1) as at
    from workflow where team_id = ${teamId} and id > ${after} order by id limit ${limit}`;
  const { graceMs } = kept;
  const dues = rows.map(({ id, isPruning, isOver, keepMs, at: supersededAt }) => {
    const at = supersededAt && supersededAt + (isOver ? graceMs : Math.max(graceMs, keepMs));
    const isNeeded = supersededAt !== null && neededAt !== null && supersededAt >= neededAt;
    return { workflowId: id, at: isPruning ? view.now : isNeeded ? view.now + graceMs + 1 : at };
  });
  const isDue = ({ at }: { at: number | null }) => at !== null && at <= view.now;
  return {
    found: dues.filter(isDue).map(({ workflowId }) => ({ teamId, workflowId })),
    next: rows.length < limit ? null : (rows.at(-1)?.id ?? null),
    at: dues.filter((one) => !isDue(one)).reduce<number | null>((first, { at }) => earlier(first, at), null),
  };
}

interface PrunableRow {
  id: string;
  isPruning: boolean;
  /** Whether the workflow has more versions than it keeps. */
  isOver: boolean;
  keepMs: number;
  /** When the oldest version was superseded. */
  at: number | null;
}

/** The last row that pruning has deleted. */
interface PrunePlace {
  removedIn: number;
  seq: number;
}

/**
 * Takes one step of deleting the versions that `Retention` does not keep: increases `oldest_version`, then deletes rows
 * that no readable version contains, at most `limit` rows and about 1 MiB. Call with `after: next` until `done`.
 *
 * Without the place, each step would read all deleted rows again, because they stay in the index while an old
 * transaction is open.
 */
export async function prune(
  tx: Tx,
  input: Retention & WorkflowRef & { limit: number; after?: PrunePlace | undefined },
): Promise<{ done: boolean; next?: PrunePlace }> {
  const { teamId, workflowId, limit } = input;
  const [workflow] = await Promise.all([lockWorkflow(tx, teamId, workflowId), inOrder(tx.db)]);
  if (workflow === undefined) return { done: true };
  const oldest = await moveOldest(tx, workflow, input);
  if (workflow.prunedVersion < oldest.version) {
    const { after = { removedIn: workflow.prunedVersion + 1, seq: -1 } } = input;
    const records = await deleteRecords(tx, workflow, { after, oldest: oldest.version, limit });
    const done = records.done && (await deleteVersions(tx, workflow, oldest.version, limit));
    if (!done) return { done: false, next: records.next };
    await tx.db.run`
      update workflow set pruned_version = ${oldest.version} where team_id = ${teamId} and id = ${workflowId}`;
  }
  return { done: oldest.done };
}

/** Increases `oldest_version` by at most `limit`. `done` is false if there may be more versions to delete. */
async function moveOldest(
  tx: Tx,
  workflow: WorkflowRow,
  { limit, ...retention }: Retention & { limit: number },
): Promise<{ version: number; done: boolean }> {
  const successors = await tx.db.all<{ number: number; publishedAt: number }>`
    select number, published_at as "publishedAt" from version
    where team_id = ${workflow.teamId} and workflow_id = ${workflow.id}
      and number > ${workflow.oldestVersion} and number <= ${workflow.currentVersion} order by number
      limit ${limit}`;
  const neededAt = await oldestPending(tx, { teamId: workflow.teamId });
  // A decision that is made after this reads newer versions.
  const graceMs = Math.max(retention.graceMs, neededAt === null ? 0 : tx.now - neededAt + 1);
  const prunable = countPrunable(successors, {
    now: tx.now,
    current: workflow.currentVersion,
    retention: {
      keepVersions: workflow.keepVersions ?? retention.keepVersions,
      keepMs: workflow.keepMs ?? retention.keepMs,
      graceMs,
    },
  });
  const version = workflow.oldestVersion + prunable;
  if (version > workflow.oldestVersion) {
    await tx.db.run`
      update workflow set oldest_version = ${version}
      where team_id = ${workflow.teamId} and id = ${workflow.id}`;
  }
  return { version, done: prunable < successors.length || successors.length < limit };
}

/**
 * Returns how many of the oldest versions may be deleted.
 *
 * @param successors for each of the oldest versions, in order, the version that superseded it; a version's age is the
 *   time since it was superseded
 */
function countPrunable(
  successors: readonly { number: number; publishedAt: number }[],
  { now, current, retention }: { now: number; current: number; retention: Retention },
): number {
  const { keepVersions, keepMs, graceMs } = retention;
  const kept = successors.findIndex(({ number, publishedAt }) => {
    const supersededMs = now - publishedAt;
    return supersededMs < graceMs || (number - 1 > current - keepVersions && supersededMs < keepMs);
  });
  return kept === -1 ? successors.length : kept;
}

const CLOSED = both(
  (pick) => `
  select seq, removed_in as "removedIn", octet_length(body) as bytes from record /* use record_removed */
  where ${ofWorkflow(pick, 'removed')} and removed_in <= $3 and (removed_in, seq) > ($5::integer, $6::bigint)
  order by removed_in, seq limit $4`,
);
const DELETE_CLOSED = both(
  (pick) => `
  delete from record /* use record_removed */
  where ${ofWorkflow(pick, 'removed')}
    and (removed_in, seq) > ($3::integer, $4::bigint) and (removed_in, seq) <= ($5::integer, $6::bigint)`,
);

/**
 * Deletes rows that neither the version `oldest` nor a later one contains, starting after the cursor. Returns the new
 * cursor, and whether all such rows are deleted.
 */
async function deleteRecords(
  tx: Tx,
  workflow: WorkflowRow,
  { after, oldest, limit }: { after: PrunePlace; oldest: number; limit: number },
): Promise<{ done: boolean; next: PrunePlace }> {
  const at = [workflow.teamId, workflow.id] as const;
  const room = { rows: limit, bytes: MAX_BATCH_BYTES };
  let next = after;
  await inParts<{ seq: number; removedIn: number; bytes: number }>(tx.db, room, {
    first: (rows) => tx.db.all(CLOSED, ...at, oldest, rows, next.removedIn, next.seq),
    upTo: async ({ removedIn, seq }) => {
      await tx.db.run(DELETE_CLOSED, ...at, next.removedIn, next.seq, removedIn, seq);
      next = { removedIn, seq };
    },
  });
  return { done: !isFull(room), next };
}

async function deleteVersions(
  tx: Tx,
  { teamId, id: workflowId }: WorkflowRow,
  oldest: number,
  limit: number,
): Promise<boolean> {
  // The list of fields may be long.
  const room = { rows: limit, bytes: MAX_BATCH_BYTES };
  let after = 0;
  await inParts<{ number: number; bytes: number }>(tx.db, room, {
    first: (rows) => tx.db.all`
      select number, octet_length(fields) as bytes from version
      where team_id = ${teamId} and workflow_id = ${workflowId} and number > ${after} and number < ${oldest}
      order by number limit ${rows}`,
    upTo: async ({ number }) => {
      await tx.db.run`
        delete from version where team_id = ${teamId} and workflow_id = ${workflowId}
          and number > ${after} and number <= ${number}`;
      after = number;
    },
  });
  return !isFull(room);
}
