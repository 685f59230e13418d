/**
 * The writes that erase a person. Each transaction is short, so that other writes do not wait long. `find-content.ts`
 * finds what to erase; `records/erase.ts` combines the steps.
 */

import type { AfterFailure } from '../../../model/job.ts';
import type { WorkflowRef } from '../../../model/workflow.ts';
import type { Page } from '../../page.ts';
import { JOB, type JobRow, UNFINISHED } from '../../rows.ts';
import { both, type Value } from '../../sql.ts';
import type { Tx, View } from '../../transaction.ts';
import { touchAllLanes } from '../agenda.ts';
import { fail, release } from '../attempts.ts';
import { inWorkflow } from '../record-indexes.ts';
import { deleteStatement, rewriteStatement, type TextPlace } from './find-content.ts';

/** Excludes a person from later runs. An empty `workflowId` means every workflow of the team. */
export interface SuppressionRow {
  workflowId: string;
  kind: 'email' | 'id';
  hash: string;
}

/** Maximum number of records that one transaction removes. */
const MAX_REMOVED = 100;

/**
 * Replaces each text, unless it has changed since it was read and no longer equals `was`. An empty text deletes a quiet
 * record, or a record in a quarantine. Returns the number of replaced texts.
 */
export async function rewrite(
  tx: Tx,
  {
    teamId,
    place,
    texts,
  }: {
    teamId: string;
    place: TextPlace;
    texts: readonly { key: string; was: string; text: string }[];
  },
): Promise<number> {
  const keyed = texts.map(({ key, ...text }) => ({ ...text, keys: JSON.parse(key) as Value[] }));
  // A running job may have read the text and would write it back or publish it, so its attempt is ended.
  const of = keyed.map(({ keys }) => String(keys[0]));
  const running = READ_BY_RUNS.has(place) ? await lockRuns(tx, { teamId, workflowIds: of }) : [];
  let changed = 0;
  for (const { keys, was, text } of keyed) {
    const deletion = text === '' ? deleteStatement(place) : undefined;
    changed +=
      deletion === undefined
        ? await tx.db.run(rewriteStatement(place), teamId, text, was, ...keys)
        : await tx.db.run(deletion, teamId, was, ...keys);
  }
  await interrupt(tx, running);
  // After this update, nodes discard the bodies that they have loaded, and no step of a rule counts that was computed
  // from the old texts. For deliveries that nodes are sending right now, they do not store the endpoint's response.
  if (IN_MEMORY.has(place) && changed > 0) {
    await tx.db.run`update team set rewrites = rewrites + 1 where id = ${teamId}`;
    touchAllLanes(tx, teamId);
  }
  return changed;
}

/** Places whose texts running jobs read: the incremental state, and records that are being accepted. */
const READ_BY_RUNS: ReadonlySet<TextPlace> = new Set(['state', 'quarantined']);

/** Places whose texts nodes load to send them, or to compute the next step of a rule. */
const IN_MEMORY: ReadonlySet<TextPlace> = new Set([
  'event',
  'deliveryBody',
  'decisionProgress',
  'quietRecord',
  'quietSent',
  'quietNewest',
]);

const ROWS = both(
  (pick) => `
  select seq, added_in as "addedIn", removed_in as "removedIn", octet_length(body) as bytes from record
  where ${inWorkflow(pick)} and seq = any($3::bigint[])`,
);
const DELETE = both((pick) => `delete from record where ${inWorkflow(pick)} and seq = any($3::bigint[])`);

/**
 * Removes records (at most 100) from every version as if they had never existed: corrects the totals and increases
 * `erasures`. A running job of the workflow starts over; a running push fails. Returns the number of removed rows.
 */
export async function remove(
  tx: Tx,
  { teamId, workflowId, seqs }: { teamId: string; workflowId: string; seqs: readonly number[] },
): Promise<number> {
  if (seqs.length > MAX_REMOVED)
    throw new RangeError(`Cannot remove ${seqs.length} records in one call (maximum: ${MAX_REMOVED})`);
  const running = await lockRuns(tx, { teamId, workflowIds: [workflowId] });
  const rows = await tx.db.all<Row>(ROWS, teamId, workflowId, seqs);
  if (rows.length > 0) {
    await subtractFromCounts(tx, { teamId, workflowId }, rows);
    await tx.db.run(DELETE, teamId, workflowId, seqs);
    await tx.db.run`
      update workflow set erasures = erasures + 1 where team_id = ${teamId} and id = ${workflowId}`;
  }
  await interrupt(tx, running);
  return rows.length;
}

interface Row {
  seq: number;
  addedIn: number;
  removedIn: number | null;
  bytes: number;
}

const UNCOUNT = `
  update version
  set total = total - $5, bytes = bytes - $6, replaced_bytes = case when replaced_bytes < $10 then 0 else replaced_bytes - $10 end,
      added = case when number = $3::bigint then greatest(0, added - $7) else added end,
      changed = case when number = $3::bigint then greatest(0, changed - $8) else changed end,
      removed = case when number = $3::bigint then greatest(0, removed - $9) else removed end
  where team_id = $1 and workflow_id = $2 and number >= $3::bigint and number < $4::bigint`;
const NEVER = Number.MAX_SAFE_INTEGER;

/** Subtracts records from the counts of every version. `all` contains all rows of the removed records. */
async function subtractFromCounts(
  tx: Tx,
  { teamId, workflowId }: WorkflowRef,
  all: readonly Row[],
): Promise<void> {
  const rows = all.map((row) => ({ ...row, removedIn: row.removedIn ?? NEVER }));
  const mark = ({ seq }: Row, version: number | null) => `${seq} ${version}`;
  const began = new Set(rows.map((row) => mark(row, row.addedIn)));
  const ended = new Set(rows.map((row) => mark(row, row.removedIn)));
  // Visible rows change only at these version numbers: from one number up to the next, every version contains the same
  // rows.
  const numbers = new Set([...rows.flatMap(({ addedIn, removedIn }) => [addedIn, removedIn]), NEVER]);
  const bounds = [...numbers].sort((a, b) => a - b);
  const updates = bounds.slice(0, -1).map((version, place) => {
    const visible = rows.filter(({ addedIn, removedIn }) => addedIn <= version && version < removedIn);
    // If one row of a record starts in the version in which another row ends, the record was changed, not added.
    const added = rows.filter(({ addedIn }) => addedIn === version);
    const changed = added.filter((row) => ended.has(mark(row, version)));
    const removed = rows.filter((row) => row.removedIn === version && !began.has(mark(row, version)));
    return tx.db.run(
      UNCOUNT,
      teamId,
      workflowId,
      version,
      bounds[place + 1] as number,
      visible.length,
      visible.reduce((sum, { bytes }) => sum + bytes, 0),
      added.length - changed.length,
      changed.length,
      removed.length,
      rows.filter(({ removedIn }) => removedIn <= version).reduce((sum, { bytes }) => sum + bytes, 0),
    );
  });
  await Promise.all(updates);
}

/**
 * Locks workflows and their unfinished jobs until the commit, so that no run starts, and returns the running jobs. Both
 * locks are needed: the lock on a workflow keeps jobs from being queued, and the lock on a job keeps it from being
 * claimed.
 */
async function lockRuns(
  tx: Tx,
  { teamId, workflowIds }: { teamId: string; workflowIds: readonly string[] | null },
): Promise<JobRow[]> {
  await tx.db.run`
    select 1 from workflow
    where team_id = ${teamId} and (${workflowIds}::text[] is null or id = any(${workflowIds}))
    order by id for update`;
  const unfinished = await tx.db.all<JobRow>`
    select ${JOB} from job /* use job_slot */
    where team_id = ${teamId} and (${workflowIds}::text[] is null or workflow_id = any(${workflowIds}))
      and ${UNFINISHED}
    order by id for update`;
  return unfinished.filter(({ state }) => state === 'running');
}

/**
 * Ends running attempts, which may have compared records that no longer exist, or have read records of a person who has
 * been suppressed since. Later writes of these attempts are rejected. Call this last in the transaction, because ending
 * a push appends an event.
 */
async function interrupt(tx: Tx, running: readonly JobRow[]): Promise<void> {
  for (const job of running) {
    const held = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
    if (job.origin !== 'push') {
      await release(tx, { held });
      continue;
    }
    const then: AfterFailure = { state: 'failed' };
    await fail(tx, {
      held,
      reason: 'lost',
      error: 'Data was erased from this workflow while the push was running. Send the records again',
      failures: job.failures,
      then,
    });
  }
}

/**
 * Excludes a person from later runs. Running jobs start over, and running pushes fail. Repeating the call is harmless.
 */
export async function suppress(
  tx: Tx,
  { teamId, entries }: { teamId: string; entries: readonly SuppressionRow[] },
): Promise<void> {
  const every = entries.some(({ workflowId }) => workflowId === '');
  const at = every ? null : entries.map(({ workflowId }) => workflowId);
  const running = await lockRuns(tx, { teamId, workflowIds: at });
  const stored = await Promise.all(
    entries.map(
      ({ workflowId, kind, hash }) => tx.db.run`
        insert into suppression (team_id, workflow_id, kind, hash, created_at)
        values (${teamId}, ${workflowId}, ${kind}, ${hash}, ${tx.now})
        on conflict do nothing`,
    ),
  );
  const of = new Set(entries.filter((_, place) => stored[place] !== 0).map(({ workflowId }) => workflowId));
  await interrupt(
    tx,
    running.filter((job) => of.has('') || of.has(job.workflowId)),
  );
}

/**
 * Returns a page of suppression entries, ordered by kind and hash, either for one workflow or (`workflowId` '') for all
 * workflows of the team.
 */
export function suppressed(
  view: View,
  { teamId, workflowId, after, limit }: WorkflowRef & Page<Pick<SuppressionRow, 'kind' | 'hash'>>,
): Promise<SuppressionRow[]> {
  return view.db.all<SuppressionRow>`
    select workflow_id as "workflowId", kind, hash from suppression
    where team_id = ${teamId} and workflow_id = ${workflowId}
      and (kind collate "C", hash) > (${after?.kind ?? ''}, ${after?.hash ?? ''})
    order by kind collate "C", hash limit ${limit}`;
}
