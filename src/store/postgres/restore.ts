/**
 * Reverts changes of a run. Rows are found and changed one by one by the primary key: see `stage.ts`.
 */
import type { StagedWrite } from '../../model/staging.ts';
import type { Tx } from '../sql.ts';
import { notCompared, ofKind, type Run, type Written } from './staging-run.ts';

const CLOSED_OF = `
  select wanted.seq, closed.added_in as "closedAddedIn", closed.bytes as "closedBytes",
         current.added_in as "currentAddedIn"
  from unnest($4::bigint[]) as wanted (seq)
  left join lateral (
    select added_in, octet_length(body) as bytes from record
    where team_id = $1 and workflow_id = $2 and seq = wanted.seq and removed_in + 0 = $3
    limit 1) as closed on true
  left join lateral (
    select added_in from record
    where team_id = $1 and workflow_id = $2 and seq = wanted.seq
      and coalesce(removed_in, 0) = 0
    limit 1) as current on true`;

const DELETE = `
  with deleted as (
    delete from record
    where team_id = $1 and workflow_id = $2 and added_in = $3 and seq = any($4::bigint[])
    returning octet_length(body) as bytes)
  select count(*) as rows, coalesce(sum(bytes), 0) as bytes from deleted`;

/** Reverts changes: deletes the rows that the run has written, and reopens those that it had closed. */
export async function restore(
  tx: Tx,
  run: Run,
  all: readonly StagedWrite[],
  seqs: Map<StagedWrite, number>,
): Promise<void> {
  const writes = ofKind(all, 'restore');
  if (writes.length === 0) return;
  const at = [run.teamId, run.workflowId, run.version] as const;
  const rows = await tx.db.all<{
    seq: number;
    closedAddedIn: number | null;
    closedBytes: number | null;
    currentAddedIn: number | null;
  }>(
    CLOSED_OF,
    ...at,
    writes.map(({ seq }) => seq),
  );
  const closed: { seq: number; addedIn: number; bytes: number }[] = [];
  for (const { seq, closedAddedIn, closedBytes, currentAddedIn } of rows) {
    if (closedAddedIn !== null) closed.push({ seq, addedIn: closedAddedIn, bytes: closedBytes ?? 0 });
    // An open row of an earlier run means that this run has restored it already.
    else if (currentAddedIn === null || currentAddedIn === run.version) throw notCompared(run, seq);
  }
  for (const write of writes) seqs.set(write, write.seq);
  if (closed.length === 0) return;
  // In this order: only one row of an id may be current.
  const deleted = await tx.db.get<Written>(
    DELETE,
    ...at,
    closed.map(({ seq }) => seq),
  );
  if (deleted === undefined || deleted.rows < closed.length) throw notCompared(run, closed[0]?.seq ?? 0);
  await reopen(tx, run, closed);
  run.changed -= closed.length;
  run.grown += closed.reduce((bytes, row) => bytes + row.bytes, 0) - deleted.bytes;
}

const REOPEN = `
  insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
  select $1, $2, seq, added_in, $3::integer, '', ''
  from unnest($4::bigint[], $5::integer[]) as old (seq, added_in)
  on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = null`;

/** Reopens rows that a run has closed in its version; they must exist. */
export async function reopen(
  tx: Tx,
  at: { teamId: string; workflowId: string; version: number },
  rows: readonly { seq: number; addedIn: number }[],
): Promise<void> {
  await tx.db.run(
    REOPEN,
    at.teamId,
    at.workflowId,
    at.version,
    rows.map(({ seq }) => seq),
    rows.map(({ addedIn }) => addedIn),
  );
}
