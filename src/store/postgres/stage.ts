/**
 * Writing a run's records under the next version N, unseen by readers, as `model/staging.ts` has decided.
 *
 * What changes is counted in the workflow's row at once, so that publishing need not count. A row that is not
 * what was compared ends the run: only one attempt writes at a time, so it would be a mistake of ours.
 *
 * Rows are changed by `insert … on conflict do update`: it finds each of them in the primary key, whatever the planner
 * believes of the table, where an `update … from unnest(…)` may walk through all records of a workflow. A row that was
 * proposed instead of found has an empty body or id, which no record has.
 */
import type { Held } from '../../model/job.ts';
import type { StagedWrite } from '../../model/staging.ts';
import { lockHeld } from './jobs.ts';
import { hasId, ofWorkflow } from './record-indexes.ts';
import type { Tx } from './transaction.ts';

/** Records that one transaction may write: it keeps its locks until it ends. */
export const MAX_BATCH = 500;

/** Makes the writes; answers their `seq`s. */
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
  };
  const seqs = new Map<StagedWrite, number>();
  // One after the other: what one of them throws must find no other one at work.
  for (const make of [insert, supersede, rewrite, restore]) await make(tx, run, writes, seqs);
  await tx.db.run(
    `update workflow
     set next_seq = $3, staged_added = staged_added + $4, staged_changed = staged_changed + $5,
         staged_largest = greatest(staged_largest, $6)
     where team_id = $1 and id = $2`,
    run.teamId,
    run.workflowId,
    run.nextSeq,
    run.added,
    run.changed,
    Math.max(0, ...writes.map((write) => ('body' in write ? Buffer.byteLength(write.body) : 0))),
  );
  return { seqs: writes.map((write) => seqs.get(write) as number) };
}

/** A run as it writes one batch. */
interface Run {
  teamId: string;
  workflowId: string;
  /** N, the version that is being written. */
  version: number;
  nextSeq: number;
  added: number;
  changed: number;
}

type Write<Kind extends StagedWrite['kind']> = Extract<StagedWrite, { kind: Kind }>;

function ofKind<Kind extends StagedWrite['kind']>(writes: readonly StagedWrite[], kind: Kind): Write<Kind>[] {
  return writes.filter((write): write is Write<Kind> => write.kind === kind);
}

const INSERT = `
  insert into record (team_id, workflow_id, seq, added_in, id, body)
  select $1, $2, $4::bigint + place - 1, $3::integer, id, body
  from unnest($5::text[], $6::text[]) with ordinality as new (id, body, place)
  on conflict do nothing`;

async function insert(
  tx: Tx,
  run: Run,
  all: readonly StagedWrite[],
  seqs: Map<StagedWrite, number>,
): Promise<void> {
  const writes = ofKind(all, 'insert');
  if (writes.length === 0) return;
  const inserted = await tx.db.run(
    INSERT,
    run.teamId,
    run.workflowId,
    run.version,
    run.nextSeq,
    writes.map(({ id }) => id),
    writes.map(({ body }) => body),
  );
  if (inserted < writes.length) await findWritten(tx, run, writes, seqs);
  else for (const [place, write] of writes.entries()) seqs.set(write, run.nextSeq + place);
  if (inserted > 0) run.nextSeq += writes.length;
  run.added += inserted;
}

const CLOSE = `
  with closed as (
    insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
    select $1, $2, seq, added_in, $3::integer, id, ''
    from unnest($4::bigint[], $5::integer[], $6::text[]) as old (seq, added_in, id)
    on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = excluded.removed_in
      where record.removed_in is null and record.id = excluded.id
    returning octet_length(body) as bytes)
  select count(*) as rows, coalesce(min(bytes), 1) as shortest from closed`;
// Only to rows that this run has closed.
const SUCCEED = `
  insert into record (team_id, workflow_id, seq, added_in, id, body)
  select $1, $2, new.seq, $3::integer, new.id, new.body
  from unnest($4::bigint[], $5::integer[], $6::text[], $7::text[]) as new (seq, old, id, body)
  cross join lateral (
    select 1 from record
    where team_id = $1 and workflow_id = $2 and seq = new.seq and added_in = new.old and id = new.id
      and removed_in + 0 = $3
    limit 1) as closed
  on conflict do nothing`;

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
    tx.db.run(
      SUCCEED,
      ...at,
      ...rows,
      writes.map(({ body }) => body),
    ),
  ]);
  const { id } = writes[0] as { id: string };
  if (closed === undefined || closed.shortest === 0 || succeeded !== closed.rows) throw notCompared(run, id);
  if (succeeded < writes.length) await findWritten(tx, run, writes, seqs);
  else for (const write of writes) seqs.set(write, write.seq);
  run.changed += succeeded;
}

/** Rows that were changed, and the length of what tells whether one of them was not there. */
interface Touched {
  rows: number;
  shortest: number;
}

const REWRITE = `
  with rewritten as (
    insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
    select $1, $2, seq, $3::integer, $3 + 1, '', body
    from unnest($4::bigint[], $5::text[]) as new (seq, body)
    on conflict (team_id, workflow_id, seq, added_in) do update set body = excluded.body
    returning octet_length(id) as bytes)
  select count(*) as rows, coalesce(min(bytes), 1) as shortest from rewritten`;

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
  for (const write of writes) seqs.set(write, write.seq);
}

const CLOSED_OF = `
  select wanted.seq, closed.added_in as "closedAddedIn", current.added_in as "currentAddedIn"
  from unnest($4::bigint[]) as wanted (seq)
  left join lateral (
    select added_in from record
    where team_id = $1 and workflow_id = $2 and seq = wanted.seq and removed_in + 0 = $3
    limit 1) as closed on true
  left join lateral (
    select added_in from record
    where team_id = $1 and workflow_id = $2 and seq = wanted.seq
      and coalesce(removed_in, 0) = 0
    limit 1) as current on true`;

/** Takes changes back: deletes what the run has written and opens again what it had closed. */
async function restore(
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
    currentAddedIn: number | null;
  }>(
    CLOSED_OF,
    ...at,
    writes.map(({ seq }) => seq),
  );
  const closed: { seq: number; addedIn: number }[] = [];
  for (const { seq, closedAddedIn, currentAddedIn } of rows) {
    if (closedAddedIn !== null) closed.push({ seq, addedIn: closedAddedIn });
    // That a row is open that an earlier run wrote means that this one has restored it already.
    else if (currentAddedIn === null || currentAddedIn === run.version) throw notCompared(run, seq);
  }
  for (const write of writes) seqs.set(write, write.seq);
  if (closed.length === 0) return;
  // In this order: only one row of an id may be current.
  const deleted = await tx.db.run(
    'delete from record where team_id = $1 and workflow_id = $2 and added_in = $3 and seq = any($4::bigint[])',
    ...at,
    closed.map(({ seq }) => seq),
  );
  if (deleted < closed.length) throw notCompared(run, closed[0]?.seq ?? 0);
  await reopen(tx, run, closed);
  run.changed -= closed.length;
}

const REOPEN = `
  insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
  select $1, $2, seq, added_in, $3::integer, '', ''
  from unnest($4::bigint[], $5::integer[]) as old (seq, added_in)
  on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = null`;

/** Opens rows that a run has closed in its version; they must be there. */
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

const WRITTEN = `
  select wanted.place, current.seq
  from unnest($4::text[], $5::text[], $6::bigint[]) with ordinality as wanted (id, body, seq, place)
  cross join lateral (
    select seq from record
    where ${ofWorkflow('current', '$2')} and ${hasId('wanted.id')}
      and added_in = $3 and body = wanted.body and seq = coalesce(wanted.seq, seq)
    limit 1) as current`;

/** The `seq`s of rows that this run wrote already: the answer to its first asking was lost. */
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

function notCompared(run: Run, record: string | number): Error {
  return new Error(
    `Record ${JSON.stringify(record)} of version ${run.version} is not what the run had compared. ` +
      'Nothing was published; run the job again, and report this if it comes back',
  );
}
