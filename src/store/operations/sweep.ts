/** Closes the records that a run did not bring, and undoes what an attempt wrote without publishing. */
import type { Held } from '../../model/job.ts';
import { both, type Tx } from '../sql.ts';
import { lockHeld } from './jobs.ts';
import { inOrder, inWorkflow, ofWorkflow } from './record-indexes.ts';
import { atATime, inParts, isFull, MAX_BATCH, MAX_BATCH_BYTES } from './room.ts';

const CLOSE = both((pick) =>
  pick({
    sqlite: `
      update record set removed_in = $3
      where ${inWorkflow(pick)} and seq = any($4) and added_in < $3 and coalesce(removed_in, 0) = 0
      returning octet_length(body) as bytes`,
    // One by one by the primary key: see `stage.ts`.
    postgres: `
      insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
      select $1, $2, old.seq, old.added_in, $3::integer, '', ''
      from unnest($4::bigint[]) as wanted (seq)
      cross join lateral (
        select seq, added_in from record
        where team_id = $1 and workflow_id = $2 and seq = wanted.seq and added_in < $3
          and coalesce(removed_in, 0) = 0
        limit 1) as old
      on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = excluded.removed_in
      returning octet_length(body) as bytes`,
  }),
);

/** Closes the first of these records, as many as one transaction should; returns how many it has dealt with. */
export async function remove(
  tx: Tx,
  { held, seqs }: { held: Held; seqs: readonly number[] },
): Promise<{ dealtWith: number }> {
  if (seqs.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  const { workflow } = await lockHeld(tx, held);
  const at = [workflow.team_id, workflow.id] as const;
  const step = atATime(tx.db, MAX_BATCH);
  let dealtWith = 0;
  let removed = 0;
  let bytes = 0;
  while (dealtWith < seqs.length && bytes < MAX_BATCH_BYTES) {
    const some = [...new Set(seqs.slice(dealtWith, dealtWith + step))];
    const closed = await tx.db.all<{ bytes: number }>(CLOSE, ...at, workflow.current_version + 1, some);
    dealtWith += step;
    removed += closed.length;
    bytes += closed.reduce((sum, row) => sum + row.bytes, 0);
  }
  await tx.db.run(
    `update workflow set staged_removed = staged_removed + $3, staged_bytes = staged_bytes - $4
     where team_id = $1 and id = $2`,
    ...at,
    removed,
    bytes,
  );
  return { dealtWith };
}

const ADDED = both(
  (pick) => `
  select seq, octet_length(body) as bytes from record /* use record_added */
  where ${ofWorkflow(pick, 'added')} and added_in = $3 order by seq limit $4`,
);
const DELETE = both(
  (pick) => `
  delete from record /* use record_added */ where ${ofWorkflow(pick, 'added')} and added_in = $3 and seq <= $4`,
);
const CLOSED = both(
  (pick) => `
  select seq, octet_length(body) as bytes from record /* use record_removed */
  where ${ofWorkflow(pick, 'removed')} and removed_in = $3 order by seq limit $4`,
);
const REOPEN = both(
  (pick) => `
  update record /* use record_removed */ set removed_in = null
  where ${ofWorkflow(pick, 'removed')} and removed_in = $3 and seq <= $4`,
);

/**
 * Undoes what earlier attempts wrote and did not publish, up to `limit` rows and some 1 MiB per call. Call until
 * `done`, before the first `stage` of an attempt.
 */
export async function sweep(
  tx: Tx,
  { held, limit }: { held: Held; limit: number },
): Promise<{ done: boolean }> {
  const [{ workflow }] = await Promise.all([lockHeld(tx, held), inOrder(tx.db)]);
  const at = [workflow.team_id, workflow.id] as const;
  const version = workflow.current_version + 1;
  const room = { rows: limit, bytes: MAX_BATCH_BYTES };
  // Rows are reopened only when none of this version is left: a closed row may still have a successor with the
  // same id.
  for (const [first, end] of [
    [ADDED, DELETE],
    [CLOSED, REOPEN],
  ] as const) {
    await inParts<{ seq: number; bytes: number }>(tx.db, room, {
      first: (rows) => tx.db.all(first, ...at, version, rows),
      upTo: ({ seq }) => tx.db.run(end, ...at, version, seq),
    });
  }
  if (isFull(room)) return { done: false };
  await tx.db.run(
    `update workflow
     set staged_added = 0, staged_changed = 0, staged_removed = 0, staged_largest = 0, staged_bytes = 0
     where team_id = $1 and id = $2`,
    ...at,
  );
  return { done: true };
}
