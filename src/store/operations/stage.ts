/**
 * Writes the records of a run, as decided by `model/planned-writes.ts`, under the next version N, which readers do not
 * see yet. Also closes records that the run did not deliver, and undoes what an attempt wrote without publishing.
 *
 * Changes are counted in the workflow's row immediately, so that publishing need not count them. If a row differs from
 * what the run compared, the run ends with an error. Only one attempt writes at a time, so such a difference would be a
 * bug.
 *
 * New rows are inserted by one statement. SQLite changes rows one by one, PostgreSQL a batch per statement. PostgreSQL
 * changes rows by `insert … on conflict do update`, which finds each row by the primary key, regardless of what
 * the planner expects of the table. An `update … from unnest(…)` may scan all records of a workflow. If the row to
 * change did not exist, the inserted row has an empty body, which no record has.
 */

import type { AttemptLease } from '../../model/job.ts';
import { type Inserts, insertsOf, type StagedChange, type StagedWrites } from '../../model/planned-writes.ts';
import { atATime, both, type Either, forEach, inParts, isFull, MAX_BATCH, MAX_BATCH_BYTES } from '../sql.ts';
import type { Tx } from '../transaction.ts';
import { lockHeld } from './jobs.ts';
import { sweepStaged } from './quarantine/staged.ts';
import { hasId, inOrder, inWorkflow, ofWorkflow } from './record-indexes.ts';

/** Maximum number of stored records that one transaction changes. Each takes SQLite several times as long as a new record. */
const MAX_CHANGES = 500;

/** The state of a run while it writes a batch. */
interface Run {
  /**
   * The team, the workflow, and the version N that the run writes. They are `$1` to `$3` of every statement in this
   * file.
   */
  at: readonly [string, string, number];
  nextSeq: number;
  added: number;
  changed: number;
  /** Bytes of the longest record written. */
  largest: number;
  /** Total bytes of the rows written, closed and reopened. */
  touched: number;
  /** How many bytes the records have grown by; negative if they have shrunk. */
  grown: number;
  /** Total bytes of the rows closed, less those reopened. */
  replaced: number;
}

/**
 * Adds the new records, and carries out as many of the changes as fit into one transaction, starting with the first.
 * Returns the `seq` of each new record, and how many changes it has handled.
 */
export async function stage(
  tx: Tx,
  { held, writes: { inserts, changes } }: { held: AttemptLease; writes: StagedWrites },
): Promise<{ seqs: number[]; handled: number }> {
  const records = (inserts?.count ?? 0) + changes.length;
  if (records > MAX_BATCH)
    throw new RangeError(`A batch may have at most ${MAX_BATCH} records, but this one has ${records}`);
  const { workflow } = await lockHeld(tx, held);
  const run: Run = {
    at: [workflow.teamId, workflow.id, workflow.currentVersion + 1],
    nextSeq: workflow.nextSeq,
    added: 0,
    changed: 0,
    largest: 0,
    touched: 0,
    grown: 0,
    replaced: 0,
  };
  const seqs = inserts === null ? [] : await add(tx, run, inserts);
  const most = Math.min(changes.length, MAX_CHANGES);
  const step = atATime(tx.db, MAX_CHANGES);
  let handled = 0;
  while (handled < most && run.touched < MAX_BATCH_BYTES) {
    const some = changes.slice(handled, Math.min(handled + step, most));
    await change(tx, run, some);
    handled += some.length;
  }
  await tx.db.run`
    update workflow
    set next_seq = ${run.nextSeq}, staged_added = staged_added + ${run.added},
      staged_changed = staged_changed + ${run.changed},
        staged_largest = greatest(staged_largest, ${run.largest}), staged_bytes = staged_bytes + ${run.grown},
        staged_replaced = staged_replaced + ${run.replaced}
    where team_id = ${workflow.teamId} and id = ${workflow.id}`;
  return { seqs, handled };
}

/**
 * SQL for the records in `$5`, a JSON list, whose ids are in `$4`. SQLite reads the id in the record instead. PostgreSQL
 * cannot, because it refuses to look at an object with the character U+0000. In both databases, a record's text stays
 * as `JSON.stringify` wrote it.
 */
const RECORDS = {
  sqlite: 'json_each($5) as new',
  postgres: `
    rows from (json_array_elements_text($4::json), json_array_elements($5::json)) with ordinality
    as new (id, body, place)`,
};
const ID = { sqlite: "new.value ->> 'id'", postgres: 'new.id' };
const BODY = { sqlite: 'new.value', postgres: 'new.body::text' };

const insertion = (seq: Either<string>) => ({
  sqlite: `
    insert into record (workflow, added_in, seq, id, body)
    select (select number from workflow where team_id = $1 and id = $2), $3, ${seq.sqlite}, ${ID.sqlite}, ${BODY.sqlite}
    from ${RECORDS.sqlite} where true
    on conflict do nothing`,
  postgres: `
    insert into record (team_id, workflow_id, added_in, seq, id, body)
    select $1, $2, $3::integer, ${seq.postgres}, ${ID.postgres}, ${BODY.postgres}
    from ${RECORDS.postgres}
    on conflict do nothing`,
});
/** Numbers the records from `$6`. */
const COUNTED = insertion({ sqlite: '$6 + new.key', postgres: '$6::bigint + place - 1' });
// Citus returns only inserted rows, but also counts those that were not inserted.
const INSERT = both((pick) => pick({ sqlite: COUNTED.sqlite, postgres: `${COUNTED.postgres} returning 1` }));

/** Adds new records, and returns the `seq` of each. */
async function add(tx: Tx, run: Run, { ids, records, count, bytes, largest }: Inserts): Promise<number[]> {
  run.touched += bytes;
  run.largest = Math.max(run.largest, largest);
  const first = run.nextSeq;
  const values = [...run.at, ids, records, first] as const;
  const added = await tx.db.pick({
    sqlite: () => tx.db.run(INSERT, ...values),
    postgres: async () => (await tx.db.all(INSERT, ...values)).length,
  })();
  if (added > 0) run.nextSeq += count;
  run.added += added;
  if (added === count) {
    run.grown += bytes;
    return Array.from({ length: count }, (_, place) => first + place);
  }
  // An earlier call, whose result was lost, has written the others.
  const written = await findWritten(tx, run, { ids, records });
  return (JSON.parse(ids) as string[]).map((id) => {
    const row = written.get(id);
    if (row === undefined) throw notCompared(run, id);
    if (row.seq >= first) run.grown += row.bytes;
    return row.seq;
  });
}

async function change(tx: Tx, run: Run, changes: readonly StagedChange[]): Promise<void> {
  for (const one of changes) {
    if (one.kind === 'restore') continue;
    const bytes = Buffer.byteLength(one.body);
    run.largest = Math.max(run.largest, bytes);
    run.touched += bytes;
  }
  const supersedes = ofKind(changes, 'supersede');
  if (supersedes.length > 0) await supersede(tx, run, supersedes);
  const rewrites = ofKind(changes, 'rewrite');
  if (rewrites.length > 0) await rewrite(tx, run, rewrites);
  const restores = ofKind(changes, 'restore');
  if (restores.length > 0) await restore(tx, run, restores);
}

type Change<Kind extends StagedChange['kind']> = Extract<StagedChange, { kind: Kind }>;

function ofKind<Kind extends StagedChange['kind']>(
  changes: readonly StagedChange[],
  kind: Kind,
): Change<Kind>[] {
  return changes.filter((one): one is Change<Kind> => one.kind === kind);
}

/** Numbers the records with the list `$6`. */
const NUMBERED = insertion({ sqlite: '$6 ->> new.key', postgres: '($6::bigint[])[place]' });
const REPLACE = both((pick) => `${pick(NUMBERED)} returning seq`);
const CLOSE = both((pick) =>
  pick({
    sqlite: `
      update record set removed_in = $3
      where ${inWorkflow(pick)} and seq = $4 and added_in = $5 and id = $6 and coalesce(removed_in, 0) = 0
      returning seq, octet_length(body) as bytes`,
    postgres: `
      insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
      select $1, $2, seq, added_in, $3::integer, id, ''
      from unnest($4::bigint[], $5::integer[], $6::text[]) as old (seq, added_in, id)
      on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = excluded.removed_in
        where record.removed_in is null and record.id = excluded.id
      returning seq, octet_length(body) as bytes`,
  }),
);

/** Adds new rows for changed records, and closes their previous rows. */
async function supersede(tx: Tx, run: Run, changes: readonly Change<'supersede'>[]): Promise<void> {
  const late = changes.find(({ addedIn }) => addedIn >= run.at[2]);
  if (late !== undefined) throw notCompared(run, late.id);
  const olds = changes.map(({ seq, addedIn, id }) => [seq, addedIn, id] as const);
  const { ids, records } = insertsOf(changes);
  const seqs = changes.map(({ seq }) => seq);
  const [closed, inserted] = await Promise.all([
    forEach<Sized>(tx.db, CLOSE, run.at, olds),
    tx.db.all<{ seq: number }>(REPLACE, ...run.at, ids, records, seqs),
  ]);
  const bytesOfClosed = new Map(closed.map(({ seq, bytes }) => [seq, bytes]));
  const added = new Set(inserted.map(({ seq }) => seq));
  for (const { seq, id, body } of changes) {
    const old = bytesOfClosed.get(seq);
    // The new row must have been added exactly if this call closed the previous row.
    if (old === 0 || (old !== undefined) !== added.has(seq)) throw notCompared(run, id);
    if (old === undefined) continue;
    run.touched += old;
    run.replaced += old;
    run.grown += Buffer.byteLength(body) - old;
  }
  run.changed += added.size;
  const missing = changes.filter(({ seq }) => !added.has(seq));
  if (missing.length === 0) return;
  const written = await findWritten(tx, run, insertsOf(missing));
  for (const { id, seq } of missing) if (written.get(id)?.seq !== seq) throw notCompared(run, id);
}

/** A changed row, and its bytes. */
interface Sized {
  seq: number;
  bytes: number;
}

const WRITTEN = both((pick) => {
  const columns = 'record.id, seq, octet_length(record.body) as bytes';
  const current = `
    record where ${ofWorkflow(pick, 'current')} and ${hasId(pick, pick(ID))} and added_in = $3
      and record.body = ${pick(BODY)}`;
  return pick({
    sqlite: `select ${columns} from ${RECORDS.sqlite} cross join ${current}`,
    postgres: `
      select current.* from ${RECORDS.postgres}
      cross join lateral (select ${columns} from ${current} limit 1) as current`,
  });
});

/** Returns, by id, the rows of those records that this run has already written. */
async function findWritten(
  tx: Tx,
  run: Run,
  { ids, records }: Pick<Inserts, 'ids' | 'records'>,
): Promise<Map<string, Sized>> {
  const found = await tx.db.all<Sized & { id: string }>(WRITTEN, ...run.at, ids, records);
  return new Map(found.map((row) => [row.id, row]));
}

/** A statement on single rows by the primary key, with `$4` as the `seq`. PostgreSQL looks up each row separately. */
function bySeq(columns: string, condition: string): Either<string> {
  const rows = (workflow: string, seq: string) =>
    `select seq, ${columns} from record where ${workflow} and seq = ${seq} and ${condition}`;
  return both((pick) =>
    pick({
      sqlite: rows(inWorkflow(pick), '$4'),
      postgres: `
        select old.* from unnest($4::bigint[]) as wanted (seq)
        cross join lateral (${rows(inWorkflow(pick), 'wanted.seq')} limit 1) as old`,
    }),
  );
}

const OWN = bySeq('octet_length(body) as bytes', 'added_in = $3');
const REWRITE = both((pick) =>
  pick({
    sqlite: `update record set body = $5 where ${inWorkflow(pick)} and seq = $4 and added_in = $3`,
    postgres: `
      insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
      select $1, $2, seq, $3::integer, $3 + 1, '', body
      from unnest($4::bigint[], $5::text[]) as new (seq, body)
      on conflict (team_id, workflow_id, seq, added_in) do update set body = excluded.body`,
  }),
);

async function rewrite(tx: Tx, run: Run, writes: readonly Change<'rewrite'>[]): Promise<void> {
  const seqs = writes.map(({ seq }) => [seq]);
  const bodies = writes.map(({ seq, body }) => [seq, body]);
  const [own] = await Promise.all([
    forEach<Sized>(tx.db, OWN, run.at, seqs),
    forEach(tx.db, REWRITE, run.at, bodies),
  ]);
  const before = new Map(own.map(({ seq, bytes }) => [seq, bytes]));
  for (const { seq, body } of writes) {
    const bytes = before.get(seq);
    if (bytes === undefined) throw notCompared(run, seq);
    run.grown += Buffer.byteLength(body) - bytes;
  }
}

const CLOSED = bySeq('added_in as "addedIn", octet_length(body) as bytes', 'removed_in + 0 = $3');
const REOPENED = bySeq('added_in as "addedIn"', 'coalesce(removed_in, 0) = 0 and added_in <> $3');
const DELETE = both((pick) =>
  pick({
    sqlite: `
      delete from record where ${inWorkflow(pick)} and seq = $4 and added_in = $3
      returning seq, octet_length(body) as bytes`,
    postgres: `
      delete from record where ${inWorkflow(pick)} and seq = any($4::bigint[]) and added_in = $3
      returning seq, octet_length(body) as bytes`,
  }),
);
const REOPEN = both((pick) =>
  pick({
    sqlite: `
      update record set removed_in = null
      where ${inWorkflow(pick)} and seq = $4 and added_in = $5 and removed_in + 0 = $3`,
    postgres: `
      insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
      select $1, $2, seq, added_in, $3::integer, '', ''
      from unnest($4::bigint[], $5::integer[]) as old (seq, added_in)
      on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = null`,
  }),
);

/** Reverts changes: deletes rows that the run has written, and reopens rows that it had closed. */
async function restore(tx: Tx, run: Run, writes: readonly Change<'restore'>[]): Promise<void> {
  const places = (of: readonly { seq: number }[]) => of.map(({ seq }) => [seq]);
  const closed = await forEach<Sized & { addedIn: number }>(tx.db, CLOSED, run.at, places(writes));
  const isClosed = new Set(closed.map(({ seq }) => seq));
  // If the row of an earlier run is open, this run has already restored it.
  const missing = writes.filter(({ seq }) => !isClosed.has(seq));
  const reopened = await forEach<{ seq: number }>(tx.db, REOPENED, run.at, places(missing));
  if (reopened.length < missing.length) throw notCompared(run, missing[0]?.seq ?? 0);
  // Rows are deleted before others are reopened, because only one row of an id may be current.
  const deleted = await forEach<Sized>(tx.db, DELETE, run.at, places(closed));
  if (deleted.length < closed.length) throw notCompared(run, closed[0]?.seq ?? 0);
  const reopens = closed.map(({ seq, addedIn }) => [seq, addedIn]);
  await forEach(tx.db, REOPEN, run.at, reopens);
  const bytes = sumOf(closed);
  run.changed -= closed.length;
  run.touched += bytes;
  run.replaced -= bytes;
  run.grown += bytes - sumOf(deleted);
}

function sumOf(rows: readonly Sized[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
}

function notCompared(run: Run, record: string | number): Error {
  return new Error(
    `Record ${JSON.stringify(record)} of version ${run.at[2]} differs from the record that the run read earlier. ` +
      'Nothing was published. Run the job again. If this error occurs again, report it as a bug',
  );
}

const CLOSE_MISSING = both((pick) =>
  pick({
    sqlite: `
      update record set removed_in = $3
      where ${inWorkflow(pick)} and (seq, added_in) in (
          select value, (select max(added_in) from record where ${inWorkflow(pick)} and seq = value and added_in < $3)
          from json_each($4))
        and coalesce(removed_in, 0) = 0
      returning octet_length(body) as bytes`,
    // PostgreSQL looks up each row separately, by the primary key.
    postgres: `
      insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
      select $1, $2, old.seq, old.added_in, $3::integer, '', ''
      from unnest($4::bigint[]) as wanted (seq)
      cross join lateral (
        select seq, added_in from record
        where team_id = $1 and workflow_id = $2 and seq = wanted.seq and added_in < $3
          and coalesce(removed_in, 0) = 0
        order by added_in desc limit 1) as old
      on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = excluded.removed_in
      returning octet_length(body) as bytes`,
  }),
);

/**
 * Closes as many of these records as fit into one transaction, starting with the first. Returns how many records it has
 * handled.
 */
export async function remove(
  tx: Tx,
  { held, seqs }: { held: AttemptLease; seqs: readonly number[] },
): Promise<{ handled: number }> {
  if (seqs.length > MAX_BATCH)
    throw new RangeError(`A batch may have at most ${MAX_BATCH} records, but this one has ${seqs.length}`);
  const { workflow } = await lockHeld(tx, held);
  const at = [workflow.teamId, workflow.id] as const;
  const step = atATime(tx.db, MAX_BATCH);
  let handled = 0;
  let removed = 0;
  let bytes = 0;
  while (handled < seqs.length && bytes < MAX_BATCH_BYTES) {
    const some = [...new Set(seqs.slice(handled, handled + step))];
    const closed = await tx.db.all<{ bytes: number }>(
      CLOSE_MISSING,
      ...at,
      workflow.currentVersion + 1,
      some,
    );
    handled += step;
    removed += closed.length;
    bytes += closed.reduce((sum, row) => sum + row.bytes, 0);
  }
  await tx.db.run`
    update workflow set staged_removed = staged_removed + ${removed}, staged_bytes = staged_bytes - ${bytes},
      staged_replaced = staged_replaced + ${bytes}
    where team_id = ${workflow.teamId} and id = ${workflow.id}`;
  return { handled };
}

const ADDED = both(
  (pick) => `
  select seq, octet_length(body) as bytes from record /* use record_added */
  where ${ofWorkflow(pick, 'added')} and added_in = $3 order by seq limit $4`,
);
const DELETE_ADDED = both(
  (pick) => `
  delete from record /* use record_added */ where ${ofWorkflow(pick, 'added')} and added_in = $3 and seq <= $4`,
);
const CLOSED_IN = both(
  (pick) => `
  select seq, octet_length(body) as bytes from record /* use record_removed */
  where ${ofWorkflow(pick, 'removed')} and removed_in = $3 order by seq limit $4`,
);
const REOPEN_CLOSED = both(
  (pick) => `
  update record /* use record_removed */ set removed_in = null
  where ${ofWorkflow(pick, 'removed')} and removed_in = $3 and seq <= $4`,
);

/**
 * Undoes what earlier attempts wrote without publishing, up to `limit` rows and about 1 MiB per call. Call until
 * `done`, before an attempt stages its first batch.
 */
export async function sweep(
  tx: Tx,
  { held, limit }: { held: AttemptLease; limit: number },
): Promise<{ done: boolean }> {
  const [{ workflow }] = await Promise.all([lockHeld(tx, held), inOrder(tx.db)]);
  const at = [workflow.teamId, workflow.id] as const;
  const version = workflow.currentVersion + 1;
  const room = { rows: limit, bytes: MAX_BATCH_BYTES };
  // Rows are reopened only when all rows added by this version are deleted. Until then, an added row may have the same
  // id as a closed row, and only one row of an id may be current.
  for (const [first, end] of [
    [ADDED, DELETE_ADDED],
    [CLOSED_IN, REOPEN_CLOSED],
  ] as const) {
    await inParts<{ seq: number; bytes: number }>(tx.db, room, {
      first: (rows) => tx.db.all(first, ...at, version, rows),
      upTo: ({ seq }) => tx.db.run(end, ...at, version, seq),
    });
  }
  await sweepStaged(tx, workflow, room);
  if (isFull(room)) return { done: false };
  await tx.db.run`
    update workflow
    set staged_added = 0, staged_changed = 0, staged_removed = 0, staged_largest = 0, staged_bytes = 0,
      staged_quarantined = 0, staged_released = 0, staged_replaced = 0
    where team_id = ${workflow.teamId} and id = ${workflow.id}`;
  return { done: true };
}
