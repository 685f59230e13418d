/**
 * Writes a run's records under the next version N, which readers do not see yet, as `model/staging.ts` has decided.
 *
 * Changes are counted in the workflow's row at once, so that publishing need not count them. A row that differs from
 * what the run compared ends the run: only one attempt writes at a time, so this would be a bug.
 *
 * Rows are changed by `insert … on conflict do update`, which finds each of them by the primary key, whatever the
 * planner believes of the table; an `update … from unnest(…)` may scan all records of a workflow. If a row did not
 * exist, the inserted one has an empty body or id, which no record has.
 */
import type { Held } from '../../model/job.ts';
import type { StagedWrite } from '../../model/staging.ts';
import { lockHeld } from '../operations/jobs.ts';
import { hasId, ofWorkflow } from '../operations/record-indexes.ts';
import { both, type Tx } from '../sql.ts';
import { restore } from './restore.ts';
import { notCompared, ofKind, type Run, type Written } from './staging-run.ts';

/** Records that one transaction may write: it keeps its locks until it ends. */
export const MAX_BATCH = 500;

/** Makes the writes; returns the `seq` of each. */
export async function stage(
  tx: Tx,
  { held, writes }: { held: Held; writes: readonly StagedWrite[] },
): Promise<{ seqs: number[] }> {
  if (writes.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  const { workflow } = await lockHeld(tx, held);
  const run: Run = {
    teamId: workflow.team_id,
    workflowId: workflow.id,
    version: workflow.current_version + 1,
    nextSeq: workflow.next_seq,
    added: 0,
    changed: 0,
    grown: 0,
  };
  const seqs = new Map<StagedWrite, number>();
  // One after the other, so that none is still running when another one throws.
  for (const make of [insert, supersede, rewrite, restore]) await make(tx, run, writes, seqs);
  await tx.db.run(
    `update workflow
     set next_seq = $3, staged_added = staged_added + $4, staged_changed = staged_changed + $5,
         staged_largest = greatest(staged_largest, $6), staged_bytes = staged_bytes + $7
     where team_id = $1 and id = $2`,
    run.teamId,
    run.workflowId,
    run.nextSeq,
    run.added,
    run.changed,
    Math.max(0, ...writes.map((write) => ('body' in write ? Buffer.byteLength(write.body) : 0))),
    run.grown,
  );
  return { seqs: writes.map((write) => seqs.get(write) as number) };
}

const INSERT = `
  with inserted as (
    insert into record (team_id, workflow_id, seq, added_in, id, body)
    select $1, $2, $4::bigint + place - 1, $3::integer, id, body
    from unnest($5::text[], $6::text[]) with ordinality as new (id, body, place)
    on conflict do nothing
    returning octet_length(body) as bytes)
  select count(*) as rows, coalesce(sum(bytes), 0) as bytes from inserted`;

async function insert(
  tx: Tx,
  run: Run,
  all: readonly StagedWrite[],
  seqs: Map<StagedWrite, number>,
): Promise<void> {
  const writes = ofKind(all, 'insert');
  if (writes.length === 0) return;
  const inserted = (await tx.db.get<Written>(
    INSERT,
    run.teamId,
    run.workflowId,
    run.version,
    run.nextSeq,
    writes.map(({ id }) => id),
    writes.map(({ body }) => body),
  )) as Written;
  if (inserted.rows < writes.length) await findWritten(tx, run, writes, seqs);
  else for (const [place, write] of writes.entries()) seqs.set(write, run.nextSeq + place);
  if (inserted.rows > 0) run.nextSeq += writes.length;
  run.added += inserted.rows;
  run.grown += inserted.bytes;
}

const CLOSE = `
  with closed as (
    insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
    select $1, $2, seq, added_in, $3::integer, id, ''
    from unnest($4::bigint[], $5::integer[], $6::text[]) as old (seq, added_in, id)
    on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = excluded.removed_in
      where record.removed_in is null and record.id = excluded.id
    returning octet_length(body) as bytes)
  select count(*) as rows, coalesce(min(bytes), 1) as shortest, coalesce(sum(bytes), 0) as bytes from closed`;
// Only for rows that this run has closed.
const SUCCEED = `
  with succeeded as (
    insert into record (team_id, workflow_id, seq, added_in, id, body)
    select $1, $2, new.seq, $3::integer, new.id, new.body
    from unnest($4::bigint[], $5::integer[], $6::text[], $7::text[]) as new (seq, old, id, body)
    cross join lateral (
      select 1 from record
      where team_id = $1 and workflow_id = $2 and seq = new.seq and added_in = new.old and id = new.id
        and removed_in + 0 = $3
      limit 1) as closed
    on conflict do nothing
    returning octet_length(body) as bytes)
  select count(*) as rows, coalesce(sum(bytes), 0) as bytes from succeeded`;

/** Closes the published rows and adds their successors. */
async function supersede(
  tx: Tx,
  run: Run,
  all: readonly StagedWrite[],
  seqs: Map<StagedWrite, number>,
): Promise<void> {
  const writes = ofKind(all, 'supersede');
  if (writes.length === 0) return;
  const late = writes.find(({ addedIn }) => addedIn >= run.version);
  if (late !== undefined) throw notCompared(run, late.id);
  const rows = [
    writes.map(({ seq }) => seq),
    writes.map(({ addedIn }) => addedIn),
    writes.map(({ id }) => id),
  ] as const;
  const at = [run.teamId, run.workflowId, run.version] as const;
  const [closed, succeeded] = await Promise.all([
    tx.db.get<Touched>(CLOSE, ...at, ...rows),
    tx.db.get<Written>(
      SUCCEED,
      ...at,
      ...rows,
      writes.map(({ body }) => body),
    ),
  ]);
  const { id } = writes[0] as { id: string };
  if (closed === undefined || closed.shortest === 0 || succeeded?.rows !== closed.rows)
    throw notCompared(run, id);
  if (succeeded.rows < writes.length) await findWritten(tx, run, writes, seqs);
  else for (const write of writes) seqs.set(write, write.seq);
  run.changed += succeeded.rows;
  run.grown += succeeded.bytes - closed.bytes;
}

/** Rows that were changed; `shortest` is 0 when one of them did not exist before. */
interface Touched extends Written {
  shortest: number;
}

// Its own select sees the rows as they were before.
const REWRITE = `
  with rewritten as (
    insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
    select $1, $2, seq, $3::integer, $3 + 1, '', body
    from unnest($4::bigint[], $5::text[]) as new (seq, body)
    on conflict (team_id, workflow_id, seq, added_in) do update set body = excluded.body
    returning octet_length(id) as id_bytes, octet_length(body) as bytes)
  select count(*) as rows, coalesce(min(id_bytes), 1) as shortest,
         coalesce(sum(bytes), 0) - (
           select coalesce(sum(old.bytes), 0)
           from unnest($4::bigint[]) as wanted (seq)
           cross join lateral (
             select octet_length(body) as bytes from record
             where team_id = $1 and workflow_id = $2 and seq = wanted.seq and added_in = $3
             limit 1) as old) as bytes
  from rewritten`;

async function rewrite(
  tx: Tx,
  run: Run,
  all: readonly StagedWrite[],
  seqs: Map<StagedWrite, number>,
): Promise<void> {
  const writes = ofKind(all, 'rewrite');
  if (writes.length === 0) return;
  const rewritten = await tx.db.get<Touched>(
    REWRITE,
    run.teamId,
    run.workflowId,
    run.version,
    writes.map(({ seq }) => seq),
    writes.map(({ body }) => body),
  );
  const { seq } = writes[0] as { seq: number };
  if (rewritten === undefined || rewritten.shortest === 0) throw notCompared(run, seq);
  run.grown += rewritten.bytes;
  for (const write of writes) seqs.set(write, write.seq);
}

const WRITTEN = both(
  (pick) => `
  select wanted.place, current.seq
  from unnest($4::text[], $5::text[], $6::bigint[]) with ordinality as wanted (id, body, seq, place)
  cross join lateral (
    select seq from record
    where ${ofWorkflow(pick, 'current')} and ${hasId(pick, 'wanted.id')}
      and added_in = $3 and body = wanted.body and seq = coalesce(wanted.seq, seq)
    limit 1) as current`,
);

/** Finds the `seq`s of rows that this run has written already, when the answer to its first call was lost. */
async function findWritten(
  tx: Tx,
  run: Run,
  writes: readonly { kind: 'insert' | 'supersede'; id: string; body: string; seq?: number }[],
  seqs: Map<StagedWrite, number>,
): Promise<void> {
  const rows = await tx.db.all<{ place: number; seq: number }>(
    WRITTEN,
    run.teamId,
    run.workflowId,
    run.version,
    writes.map(({ id }) => id),
    writes.map(({ body }) => body),
    writes.map(({ seq }) => seq ?? null),
  );
  const found = new Map(rows.map(({ place, seq }) => [place - 1, seq]));
  for (const [place, write] of writes.entries()) {
    const seq = found.get(place);
    if (seq === undefined) throw notCompared(run, write.id);
    seqs.set(write as StagedWrite, seq);
  }
}
