/**
 * What a run changes in the quarantine of its workflow. Rows have a range of validity, like those of records: a run
 * writes under the number of the next run, and publishing makes that number current. A run that fails leaves rows that
 * nobody sees, which the next attempt deletes.
 */

import type { AttemptLease } from '../../../model/job.ts';
import type { SetAside } from '../../../model/quality/quarantine.ts';
import type { WorkflowRow } from '../../rows.ts';
import { atATime, forEach, inParts, MAX_BATCH, MAX_BATCH_BYTES, type Room } from '../../sql.ts';
import type { Tx, View } from '../../transaction.ts';
import { fenced, lockHeld } from '../jobs.ts';
import { recordKey } from '../record-indexes.ts';

export const RELEASE = {
  // Otherwise SQLite reads the whole quarantine for each id, which took 8 ms among 6,000 records.
  sqlite: `
    update quarantined /* use quarantined_record */ set removed_in = $3
    where team_id = $1 and workflow_id = $2 and record_key = $5 and removed_in is null
      and (added_in < $3 or position < $4)
    returning added_in as "addedIn", bytes`,
  postgres: `
    update quarantined set removed_in = $3::integer
    from unnest($5::text[]) as released (record_key)
    where quarantined.team_id = $1 and quarantined.workflow_id = $2
      and quarantined.record_key = released.record_key and quarantined.removed_in is null
      and (quarantined.added_in < $3::integer or quarantined.position < $4::integer)
    returning quarantined.added_in as "addedIn", quarantined.bytes`,
};
/** What this run has both added and ended has never been in the quarantine. */
const DELETE_OWN = `
  delete from quarantined where team_id = $1 and workflow_id = $2 and added_in = $3 and removed_in = $3`;
const ADDED_COLUMNS = `
  team_id, workflow_id, added_in, job_id, created_at, position, record_key, bytes, record_id, reasons, body`;
const ADD = {
  sqlite: `
    insert into quarantined (${ADDED_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    on conflict do nothing returning 1`,
  postgres: `
    insert into quarantined (${ADDED_COLUMNS})
    select $1, $2, $3::integer, $4, $5::bigint, added.*
    from unnest($6::integer[], $7::text[], $8::integer[], $9::text[], $10::text[], $11::text[]) as added
    on conflict do nothing returning 1`,
};

/**
 * Ends entries whose ids the run delivered again, then adds entries. Ends as many as fit into one transaction, and adds
 * once all are ended: returns how many of `released` it has handled, and whether it has added. Repeating a call changes
 * nothing.
 *
 * @param input.first the position of the batch's first record; entries of the same run from this position on stay
 * @param input.released ids in the quarantine (`keys`) that the run delivered again, good or bad
 * @param input.added the bad records of a batch, whose ids are all different
 */
export async function stage(
  tx: Tx,
  {
    held,
    first,
    released,
    added,
  }: { held: AttemptLease; first: number; released: readonly string[]; added: readonly SetAside[] },
): Promise<{ handled: number; done: boolean }> {
  if (Math.max(released.length, added.length) > MAX_BATCH)
    throw new RangeError(`A batch may change at most ${MAX_BATCH} entries of the quarantine`);
  const { workflow } = await lockHeld(tx, held);
  const run = workflow.quarantineRun + 1;
  const at = [workflow.teamId, workflow.id, run] as const;
  const step = atATime(tx.db, MAX_BATCH);
  const ended: { addedIn: number; bytes: number }[] = [];
  let handled = 0;
  for (let bytes = 0; handled < released.length && bytes < MAX_BATCH_BYTES; ) {
    const some = released.slice(handled, handled + step);
    const rows = some.map((id) => [recordKey(id)]);
    const closed = await forEach<{ addedIn: number; bytes: number }>(tx.db, RELEASE, [...at, first], rows);
    handled += some.length;
    bytes += closed.reduce((sum, row) => sum + row.bytes, 0);
    ended.push(...closed);
  }
  const done = handled === released.length;
  const rows = added.map(({ position, id, body, bytes, reasons }) => {
    return [position, recordKey(id), bytes, id, JSON.stringify(reasons), body];
  });
  const inserted = done ? await forEach(tx.db, ADD, [...at, held.jobId, tx.now], rows) : [];
  if (ended.length + inserted.length > 0) {
    const own = ended.filter(({ addedIn }) => addedIn === run).length;
    if (own > 0) await tx.db.run(DELETE_OWN, ...at);
    await tx.db.run`
      update workflow set staged_released = staged_released + ${ended.length - own},
        staged_quarantined = staged_quarantined + ${inserted.length - own}
      where team_id = ${workflow.teamId} and id = ${workflow.id}`;
  }
  return { handled, done };
}

/**
 * Returns the keys (`recordKey`) of entries in the quarantine of a run's workflow, in pages by key. `next` is null after
 * the last. Throws FencedError.
 */
export async function keys(
  view: View,
  { held, after, limit }: { held: AttemptLease; after: string; limit: number },
): Promise<{ keys: string[]; next: string | null }> {
  const workflow = await view.db.get<{ id: string }>`
    select workflow_id as id from job where team_id = ${held.teamId} and id = ${held.jobId}
      and attempt = ${held.attempt} and state = 'running'`;
  if (workflow === undefined) throw fenced(held);
  const rows = await view.db.all<{ key: string }>`
    select record_key as key from quarantined /* use quarantined_record */
    where team_id = ${held.teamId} and workflow_id = ${workflow.id} and record_key > ${after}
      and removed_in is null
    order by record_key limit ${limit}`;
  return { keys: rows.map(({ key }) => key), next: rows.length < limit ? null : (rows.at(-1)?.key ?? null) };
}

const ADDED = `
  select added_in as "addedIn", position, bytes from quarantined
  where team_id = $1 and workflow_id = $2 and added_in > $3 order by added_in, position limit $4`;
const DELETE_ADDED = `
  delete from quarantined
  where team_id = $1 and workflow_id = $2 and added_in > $3 and (added_in, position) <= ($4, $5)`;
const REMOVED = `
  select removed_in as "removedIn", added_in as "addedIn", position, bytes
  from quarantined /* use quarantined_removed */
  where team_id = $1 and workflow_id = $2 and removed_in > $3
  order by removed_in, added_in, position limit $4`;
const REOPEN = `
  update quarantined /* use quarantined_removed */ set removed_in = null
  where team_id = $1 and workflow_id = $2 and removed_in > $3
    and (removed_in, added_in, position) <= ($4, $5, $6)`;

interface RowPlace {
  removedIn: number;
  addedIn: number;
  position: number;
  bytes: number;
}

/** Undoes what earlier attempts have staged, until `room` is used up. */
export async function sweepStaged(tx: Tx, workflow: WorkflowRow, room: Room): Promise<void> {
  const at = [workflow.teamId, workflow.id, workflow.quarantineRun] as const;
  await inParts<RowPlace>(tx.db, room, {
    first: (rows) => tx.db.all(ADDED, ...at, rows),
    upTo: ({ addedIn, position }) => tx.db.run(DELETE_ADDED, ...at, addedIn, position),
  });
  await inParts<RowPlace>(tx.db, room, {
    first: (rows) => tx.db.all(REMOVED, ...at, rows),
    upTo: (last) => tx.db.run(REOPEN, ...at, last.removedIn, last.addedIn, last.position),
  });
}
