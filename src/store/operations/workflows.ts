/**
 * Workflows: their definitions, the state of their data, and the states that their sources keep.
 *
 * The row of a workflow is the lock for its job slots: every operation that queues or ends a job, pauses or archives locks
 * this row first, and then the rows of jobs.
 */

import { appliedFreshness, resumedFreshness } from '../../model/quality/freshness.ts';
import type { Definition, Workflow } from '../../model/workflow.ts';
import type { Page } from '../page.ts';
import {
  type InTeam,
  JOB,
  type JobRow,
  LISTED,
  type ListedRow,
  stateOf,
  toWorkflow,
  UNFINISHED,
  WORKFLOW,
  type WorkflowRow,
} from '../rows.ts';
import { both } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { makeDue, PRUNE_AFTER_MS, touchJobs } from './agenda.ts';
import { touchFreshness } from './quality/freshness.ts';
import { requireRoom } from './quotas.ts';

const DAY_MS = 86_400_000;

/** The fields needed to find out whether a workflow's file still equals the applied definition. */
export interface AppliedWorkflow {
  teamId: string;
  id: string;
  definitionHash: string;
  sourceType: Definition['source']['type'];
}

type ApplyInput = {
  teamId: string;
  id: string;
  definition: Definition;
  hash: string;
  nextRunAt: number | null;
  expectedHash?: string;
};

/**
 * Stores a definition. An archived workflow is restored with its data. `nextRunAt` is used only if the schedule has
 * changed, so that applying an unchanged schedule does not move its next run. With `expectedHash`, the call returns
 * `stale` and changes nothing if the stored definition has another hash.
 */
export async function apply(
  tx: Tx,
  input: ApplyInput,
): Promise<'created' | 'changed' | 'unchanged' | 'restored' | 'stale'> {
  const { teamId, id, hash, expectedHash } = input;
  const definition = JSON.stringify(input.definition);
  const { keepVersions, keepMs } = keptBy(input.definition);
  const found = await lockWorkflow(tx, teamId, id);
  if (expectedHash !== undefined && (found?.archivedAt !== null || found.definitionHash !== expectedHash)) {
    return 'stale';
  }
  if (found === undefined || found.archivedAt !== null) await requireRoom(tx, teamId, 'workflows');
  const stored = found ?? (await create(tx, input, definition));
  if (stored === 'created') return stored;
  if (stored.archivedAt === null && stored.definitionHash === hash) return 'unchanged';
  const { freshMs, freshDueAt, staleSince } = appliedFreshness(input.definition, stored, tx.now);
  await Promise.all([
    tx.db.run`
      update workflow set definition = ${definition}, definition_hash = ${hash},
        keep_versions = ${keepVersions}, keep_ms = ${keepMs},
        next_run_at = ${nextRun(input, stored)}, archived_at = null, fresh_ms = ${freshMs},
        fresh_due_at = ${freshDueAt}, stale_since = ${staleSince}, updated_at = ${tx.now}
      where team_id = ${teamId} and id = ${id}`,
    // Jobs that waited while the workflow was archived may start again.
    park(tx, { teamId, ids: [id], parked: stored.pausedAt !== null }),
  ]);
  touchJobs(tx, teamId, tx.now);
  touchFreshness(tx, teamId, freshDueAt);
  // More versions may be old now.
  makeDue(tx, teamId, 'prune', tx.now + PRUNE_AFTER_MS);
  return stored.archivedAt === null ? 'changed' : 'restored';
}

/** How long the versions of a workflow are kept; null for the default. */
function keptBy({ keep }: Definition): { keepVersions: number | null; keepMs: number | null } {
  return keep === undefined
    ? { keepVersions: null, keepMs: null }
    : { keepVersions: keep.versions, keepMs: keep.days * DAY_MS };
}

/**
 * Returns the next run after a definition was applied. An unchanged schedule keeps its next run, unless the workflow
 * was archived.
 */
function nextRun(
  input: { definition: Definition; nextRunAt: number | null },
  stored: WorkflowRow | undefined,
): number | null {
  const { schedule } = input.definition;
  if (schedule === null) return null;
  if (stored === undefined || stored.archivedAt !== null) return input.nextRunAt;
  const before = (JSON.parse(stored.definition) as Definition).schedule;
  return JSON.stringify(before) === JSON.stringify(schedule) ? stored.nextRunAt : input.nextRunAt;
}

const CREATE = both(
  (pick) => `
  insert into workflow
    (team_id, id, definition, definition_hash, next_run_at, created_at, updated_at, fresh_ms, fresh_due_at, keep_versions,
     keep_ms${pick({ sqlite: ', number', postgres: '' })})
  select $1, $2, $3, $4, $5::bigint, $6::bigint, $6::bigint, $7::bigint, $8::bigint, $9::integer, $10::bigint
    ${pick({ sqlite: ', coalesce(max(number), 0) + 1 from workflow where true', postgres: '' })}
  on conflict (team_id, id) do nothing`,
);

/** Inserts a workflow. If another node has just inserted the same workflow, returns its row instead. */
async function create(tx: Tx, input: ApplyInput, definition: string): Promise<'created' | WorkflowRow> {
  const { teamId, id, hash } = input;
  const { freshMs, freshDueAt } = appliedFreshness(input.definition, undefined, tx.now);
  const { keepVersions, keepMs } = keptBy(input.definition);
  const values = [
    teamId,
    id,
    definition,
    hash,
    nextRun(input, undefined),
    tx.now,
    freshMs,
    freshDueAt,
    keepVersions,
    keepMs,
  ];
  if ((await tx.db.run(CREATE, ...values)) === 0) return (await lockWorkflow(tx, teamId, id)) as WorkflowRow;
  touchFreshness(tx, teamId, freshDueAt);
  return 'created';
}

/** A workflow that is not archived. */
export async function get(view: View, { teamId, id }: InTeam): Promise<Workflow | undefined> {
  const row = await workflowRow(view, teamId, id);
  return row === undefined || row.archivedAt !== null ? undefined : toWorkflow(row);
}

/** Returns a page of a team's workflows, ordered by id. Archived workflows are left out unless `archived` is set. */
export async function list(
  view: View,
  { teamId, archived = false, after = '', limit }: { teamId: string; archived?: boolean } & Page,
): Promise<Workflow[]> {
  const rows = await view.db.all<ListedRow>`
    select ${LISTED} from workflow
    where team_id = ${teamId} and id > ${after} and (archived_at is null or ${archived}) order by id limit ${limit}`;
  return rows.map(toWorkflow);
}

/** Returns a page of the unarchived workflows of all teams, ordered by team and id. */
export async function applied(
  view: View,
  { after, limit }: Page<Pick<AppliedWorkflow, 'teamId' | 'id'>>,
): Promise<AppliedWorkflow[]> {
  // PostgreSQL cannot read any field of a JSON text that contains an escaped NUL or half a surrogate pair, and the
  // whole statement fails. So definitions with an escape are parsed here. Otherwise the definition of one team would
  // keep the definitions of all teams from being compared.
  const rows = await view.db.all<AppliedWorkflow & { unread: string | null }>`
    select team_id as "teamId", id, definition_hash as "definitionHash",
      case when strpos(definition, '\\u') = 0 then definition::json -> 'source' ->> 'type' end as "sourceType",
      case when strpos(definition, '\\u') > 0 then definition end as unread
    from workflow where (team_id, id) > (${after?.teamId ?? ''}, ${after?.id ?? ''}) and archived_at is null
    order by team_id, id limit ${limit}`;
  return rows.map(({ unread, ...row }) =>
    unread === null ? row : { ...row, sourceType: (JSON.parse(unread) as Definition).source.type },
  );
}

/** Archives workflows: requests for them then return 404, but their data is kept. Returns how many were archived. */
export async function archive(
  tx: Tx,
  { teamId, ids }: { teamId: string; ids: readonly string[] },
): Promise<number> {
  // Workflows are locked in the order of their ids, so that two simultaneous calls do not deadlock.
  const locked = await tx.db.all<{ id: string }>`
    select id from workflow where team_id = ${teamId} and archived_at is null and id = any(${ids}::text[])
    order by id for update`;
  if (locked.length === 0) return 0;
  const archived = locked.map(({ id }) => id);
  await Promise.all([
    tx.db.run`
      update workflow set archived_at = ${tx.now}, updated_at = ${tx.now}
      where team_id = ${teamId} and id = any(${archived}::text[])`,
    park(tx, { teamId, ids: archived, parked: true }),
  ]);
  return locked.length;
}

/** Pauses a workflow. The workflow accepts and starts no jobs; a running job continues. Pausing twice is harmless. */
export async function pause(tx: Tx, { teamId, id }: InTeam): Promise<Workflow | undefined> {
  const row = await lockWorkflow(tx, teamId, id);
  if (row === undefined || row.archivedAt !== null) return undefined;
  if (row.pausedAt !== null) {
    tx.repeated = true;
    return toWorkflow(row);
  }
  await Promise.all([
    tx.db.run`
      update workflow set paused_at = ${tx.now}, updated_at = ${tx.now}
      where team_id = ${teamId} and id = ${id}`,
    park(tx, { teamId, ids: [id], parked: true }),
  ]);
  return toWorkflow({ ...row, pausedAt: tx.now, updatedAt: tx.now });
}

/**
 * Ends the pause of a workflow. `nextRunAt` is the time of the next scheduled run. Runs missed during the pause are not
 * made up for.
 */
export async function resume(
  tx: Tx,
  { teamId, id, nextRunAt }: { teamId: string; id: string; nextRunAt: number | null },
): Promise<Workflow | undefined> {
  const row = await lockWorkflow(tx, teamId, id);
  if (row === undefined || row.archivedAt !== null) return undefined;
  if (row.pausedAt === null) {
    tx.repeated = true;
    return toWorkflow(row);
  }
  const { schedule } = JSON.parse(row.definition) as Definition;
  const next = schedule === null ? null : nextRunAt;
  const { freshDueAt } = resumedFreshness(row, tx.now);
  await Promise.all([
    tx.db.run`
      update workflow set paused_at = null, updated_at = ${tx.now}, next_run_at = ${next},
        fresh_due_at = ${freshDueAt}
      where team_id = ${teamId} and id = ${id}`,
    park(tx, { teamId, ids: [id], parked: false }),
  ]);
  touchJobs(tx, teamId, tx.now);
  touchFreshness(tx, teamId, freshDueAt);
  return toWorkflow({ ...row, pausedAt: null, updatedAt: tx.now, nextRunAt: next, freshDueAt });
}

/** Returns the state as JSON text; null if there is none. Undefined: no such workflow, or it is archived. */
export async function state(
  view: View,
  { teamId, id }: InTeam,
): Promise<{ state: string | null } | undefined> {
  const row = await workflowRow(view, teamId, id);
  return row === undefined || row.archivedAt !== null ? undefined : { state: stateOf(row) };
}

/**
 * Replaces the state, a JSON text, or removes it with null. The next run starts from it. Changes nothing while a run is
 * in progress (`running`), because its end would overwrite the state, or if the state is no longer `expected` (`stale`).
 */
export async function setState(
  tx: Tx,
  { teamId, id, state, expected }: InTeam & { state: string | null; expected?: string | null },
): Promise<{ outcome: 'set' | 'unchanged' | 'stale' | 'not_found' } | { outcome: 'running'; jobId: string }> {
  const workflow = await lockWorkflow(tx, teamId, id);
  if (workflow === undefined || workflow.archivedAt !== null) return { outcome: 'not_found' };
  if (expected !== undefined && stateOf(workflow) !== expected) return { outcome: 'stale' };
  // The lock on a waiting job keeps it from being claimed with the old state.
  const unfinished = await tx.db.all<JobRow>`
    select ${JOB} from job /* use job_slot */
    where team_id = ${teamId} and workflow_id = ${id} and ${UNFINISHED} order by id for update`;
  const running = unfinished.find((job) => job.state === 'running');
  if (running !== undefined) return { outcome: 'running', jobId: running.id };
  if (stateOf(workflow) === state) return { outcome: 'unchanged' };
  await tx.db.run`update workflow set state = ${state} where team_id = ${teamId} and id = ${id}`;
  return { outcome: 'set' };
}

/**
 * Removes the unfinished jobs of workflows (at most two each) from the index that claims search, so that no claim has
 * to skip them, or adds them again. Jobs that are added again are dated now (see `claim-bounds.ts`). The caller has
 * locked the rows of the workflows.
 */
async function park(
  tx: Tx,
  { teamId, ids, parked }: { teamId: string; ids: readonly string[]; parked: boolean },
): Promise<void> {
  await tx.db.run(
    `update job /* use job_slot */ set parked = $1,
       run_at = case when $1 = 0 and state <> 'running' then greatest(run_at, $4) else run_at end
     where team_id = $2 and workflow_id = any($3::text[]) and ${UNFINISHED}
       and parked <> $1`,
    parked ? 1 : 0,
    teamId,
    ids,
    tx.now,
  );
}

/** The row, archived or not. */
export function workflowRow(view: View, teamId: string, id: string): Promise<WorkflowRow | undefined> {
  return view.db.get<WorkflowRow>`select ${WORKFLOW} from workflow where team_id = ${teamId} and id = ${id}`;
}

/**
 * Returns the workflow's row, archived or not, and locks it until the commit. Call this before locking the workflow's
 * jobs or records.
 */
export async function lockWorkflow(tx: Tx, teamId: string, id: string): Promise<WorkflowRow | undefined> {
  if (tx.locked?.workflow?.id === id) return tx.locked.workflow;
  return tx.db.get<WorkflowRow>`
    select ${WORKFLOW} from workflow where team_id = ${teamId} and id = ${id} for update`;
}
