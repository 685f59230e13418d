/**
 * Freshness: finding the workflows that have become stale, one team after another. A run that succeeds moves the time of
 * its workflow (`publish.ts`), as do definitions and the end of a pause (`workflows.ts`).
 */

import { staleData } from '../../../model/event.ts';
import type { Page } from '../../page.ts';
import { Part } from '../../sql.ts';
import type { Tx, View } from '../../transaction.ts';
import { makeDue, raise, VISIT_MS } from '../agenda.ts';
import { appendEvent } from '../events.ts';
import { summaries } from '../job-lists.ts';

/** The condition of the index `workflow_fresh`. */
const WATCHED = new Part('fresh_ms is not null and stale_since is null');
const ACTIVE = new Part('paused_at is null and archived_at is null');

/** Makes the next search for stale workflows of a team due when a workflow may become stale. */
export function touchFreshness(tx: Tx, teamId: string, dueAt: number | null): void {
  if (dueAt !== null) makeDue(tx, teamId, 'fresh', Math.min(dueAt, tx.now + VISIT_MS));
}

/**
 * Marks the workflows of a team that have become stale, at most `limit` per call, and returns their ids; call until
 * `done`. Any number of nodes may do this at the same time: a workflow is marked in the transaction that writes its
 * event, under its lock. Workflows that are locked, for example because a run publishes, are left to the next visit.
 * Event: `workflow_stale`, once until a run succeeds.
 */
export async function markStale(
  tx: Tx,
  { teamId, limit }: { teamId: string; limit: number },
): Promise<{ done: boolean; stale: string[] }> {
  const found = await tx.db.all<WatchedRow>`
    select id, fresh_ms as "freshMs", fresh_due_at as "freshDueAt", current_version as version
    from workflow /* use workflow_fresh */
    where team_id = ${teamId} and ${WATCHED}
      and (fresh_due_at <= ${tx.now} and ${ACTIVE} or fresh_due_at > ${tx.now} + fresh_ms)
    order by id limit ${limit} for update skip locked`;
  const [due, tooLate] = [true, false].map((isDue) =>
    found.filter(({ freshDueAt }) => freshDueAt <= tx.now === isDue),
  ) as [WatchedRow[], WatchedRow[]];
  if (tooLate.length > 0) {
    // These times were written before the clock was set back.
    await tx.db.run`
      update workflow set fresh_due_at = ${tx.now} + fresh_ms
      where team_id = ${teamId} and id = any(${tooLate.map(({ id }) => id)}::text[])`;
  }
  if (due.length > 0) {
    const workflowIds = due.map(({ id }) => id);
    await tx.db.run`
      update workflow set stale_since = ${tx.now} where team_id = ${teamId} and id = any(${workflowIds}::text[])`;
    const last = await summaries(tx, { teamId, workflowIds });
    for (const { id: workflowId, ...workflow } of due) {
      const lastJob = last.get(workflowId)?.last ?? null;
      const data = staleData({ nowMs: tx.now, workflowId, ...workflow, lastJob });
      appendEvent(tx, { teamId, type: 'workflow_stale', workflowId, jobId: null, finishedAt: null, data });
    }
  }
  await raise(tx, { teamId, item: 'fresh' }, async () => {
    const next = await tx.db.get<{ at: number | null }>`
      select min(fresh_due_at) as at from workflow /* use workflow_fresh */
      where team_id = ${teamId} and ${WATCHED} and ${ACTIVE}`;
    return next?.at == null ? null : Math.min(next.at, tx.now + VISIT_MS);
  });
  return { done: found.length < limit, stale: due.map(({ id }) => id) };
}

interface WatchedRow {
  id: string;
  freshMs: number;
  freshDueAt: number;
  version: number;
}

/**
 * Lists teams, ordered by id, with a workflow whose time is further ahead than its `fresh`: it was written before the
 * clock was set back. Reads the times of all workflows that have one.
 */
export async function ahead(view: View, { after = '', limit }: Page): Promise<{ teamId: string }[]> {
  return view.db.all<{ teamId: string }>`
    select distinct team_id as "teamId" from workflow /* use workflow_fresh */
    where ${WATCHED} and fresh_due_at > ${view.now} + fresh_ms and team_id > ${after}
    order by team_id limit ${limit}`;
}

/** Counts stale workflows of all teams, up to `most`. Paused and archived ones are left out. */
export async function countStale(view: View, { most }: { most: number }): Promise<number> {
  const found = await view.db.get<{ count: number }>`
    select count(*)::integer as count from (
      select 1 from workflow /* use workflow_stale */ where stale_since is not null and ${ACTIVE} limit ${most}
    ) as stale`;
  return found?.count ?? 0;
}
