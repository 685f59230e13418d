/** Deletes entries of quarantines that have ended, or are old, or are too many. */

import { MOST_QUARANTINED } from '../../../model/quality/quarantine.ts';
import { earlier } from '../../../std/earlier.ts';
import { inParts, isFull, MAX_BATCH_BYTES, type Room } from '../../sql.ts';
import type { Tx } from '../../transaction.ts';

/** Maximum number of workflows per call. */
const WORKFLOWS_AT_ONCE = 100;

const ENDED = `
  select removed_in as "removedIn", added_in as "addedIn", position, bytes
  from quarantined /* use quarantined_removed */
  where team_id = $1 and workflow_id = $2 and removed_in <= $3
  order by removed_in, added_in, position limit $4`;
const DELETE_ENDED = `
  delete from quarantined /* use quarantined_removed */
  where team_id = $1 and workflow_id = $2 and removed_in <= $3
    and (removed_in, added_in, position) <= ($4, $5, $6)`;
const OLDEST = `
  select added_in as "addedIn", position, bytes, created_at as "createdAt" from quarantined
  where team_id = $1 and workflow_id = $2 and added_in <= $3 order by added_in, position limit $4`;
const DELETE_OLDEST = `
  delete from quarantined where team_id = $1 and workflow_id = $2 and (added_in, position) <= ($3, $4)`;

interface Row {
  removedIn: number;
  addedIn: number;
  position: number;
  bytes: number;
  createdAt: number;
}

/**
 * Deletes entries of a team's quarantines: those that have ended, those that were set aside more than `keepMs` ago, and
 * the oldest of a quarantine that has more than `MOST_QUARANTINED`. Deletes at most `limit` rows and about 1 MiB per
 * call; call with `after: next` until `done`. `at` is when the next entry becomes old.
 */
export async function prune(
  tx: Tx,
  input: { teamId: string; keepMs: number; limit: number; after?: string | undefined },
): Promise<{ done: boolean; next?: string; at: number | null }> {
  const { teamId, keepMs, limit, after = '' } = input;
  const workflows = await tx.db.all<{ id: string; run: number }>`
    select id, quarantine_run as run from workflow
    where team_id = ${teamId} and id > ${after} and quarantine_run > 0 order by id limit ${WORKFLOWS_AT_ONCE}`;
  const room = { rows: limit, bytes: MAX_BATCH_BYTES };
  let [next, at]: [string, number | null] = [after, null];
  for (const workflow of workflows) {
    const of = [teamId, workflow.id, workflow.run] as const;
    await inParts<Row>(tx.db, room, {
      first: (rows) => tx.db.all(ENDED, ...of, rows),
      upTo: ({ removedIn, addedIn, position }) =>
        tx.db.run(DELETE_ENDED, ...of, removedIn, addedIn, position),
    });
    const oldest = isFull(room) ? null : await deleteOldest(tx, of, keepMs, room);
    if (isFull(room)) return { done: false, next, at };
    at = earlier(at, oldest === null ? null : oldest + keepMs);
    next = workflow.id;
  }
  return { done: workflows.length < WORKFLOWS_AT_ONCE, next, at };
}

/** Deletes the oldest entries of a quarantine until `room` is used up. Returns when the oldest one left was set aside. */
async function deleteOldest(
  tx: Tx,
  of: readonly [teamId: string, workflowId: string, run: number],
  keepMs: number,
  room: Room,
): Promise<number | null> {
  const [teamId, workflowId] = of;
  const all = await tx.db.get<{ count: number; bytes: number }>`
    select count(*) as count, coalesce(sum(bytes), 0) as bytes from quarantined
    where team_id = ${teamId} and workflow_id = ${workflowId}`;
  let { count, bytes } = all ?? { count: 0, bytes: 0 };
  let oldest: number | null = null;
  await inParts<Row>(tx.db, room, {
    async first(rows) {
      const found = await tx.db.all<Row>(OLDEST, ...of, rows);
      const kept = found.findIndex((row) => {
        const isOver = count > MOST_QUARANTINED.records || bytes > MOST_QUARANTINED.bytes;
        if (!isOver && row.createdAt > tx.now - keepMs) return true;
        count -= 1;
        bytes -= row.bytes;
        return false;
      });
      oldest = found[kept]?.createdAt ?? null;
      return kept === -1 ? found : found.slice(0, kept);
    },
    upTo: ({ addedIn, position }) => tx.db.run(DELETE_OLDEST, teamId, workflowId, addedIn, position),
  });
  return oldest;
}
