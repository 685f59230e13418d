/** What a run reads before it can decide what to write: the rows of given ids, and all current rows. */
import type { AttemptLease } from '../../model/job.ts';
import type { ComparedRecord } from '../../model/staging.ts';
import { both, forEach, MAX_BATCH, type Sql, type View } from '../sql.ts';
import { fenced } from './jobs.ts';
import { hasId, inWorkflow, ofWorkflow } from './record-indexes.ts';
import { beforeNext } from './records.ts';

/** What ingest must know of a batch before it can decide what to write. */
export interface Compared {
  /** The version under which the run writes: current + 1. */
  version: number;
  /** The rows of the batch's ids that are current or that this run has written. */
  rows: ComparedRecord[];
}

/** The workflow that an attempt writes to, and N, the version under which it writes; else throws FencedError. */
async function heldWorkflow(
  db: Sql,
  held: AttemptLease,
): Promise<{ workflowId: string; version: number; nextSeq: number }> {
  const workflow = await db.get<{ workflowId: string; version: number; nextSeq: number }>`
    select workflow.id as "workflowId", current_version + 1 as version, next_seq as "nextSeq"
    from job
    join workflow on workflow.team_id = job.team_id and workflow.id = job.workflow_id
    where job.team_id = ${held.teamId} and job.id = ${held.jobId} and job.attempt = ${held.attempt}
      and job.state = 'running'`;
  if (workflow === undefined) throw fenced(held);
  return workflow;
}

const COMPARE = both((pick) => {
  const current = (id: string, columns: string) =>
    `select ${columns} from record where ${ofWorkflow(pick, 'current')} and ${hasId(pick, id)}`;
  // What the run has closed, if it has written the current row.
  const closed = (columns: string, row: string) => `
    select ${columns} from record closed
    where ${inWorkflow(pick, 'closed')} and closed.seq = ${row}.seq and closed.removed_in + 0 = $3::integer
      and ${row}.added_in = $3::integer`;
  return pick({
    sqlite: current(
      '$4',
      `id, seq, added_in as "addedIn", ${bodyOfSize('body', '$5')} as body,
       (${closed(bodyOfSize('closed.body', '$5'), 'record')}) as published`,
    ),
    // Each id is looked up by itself: because of the `limit` the planner cannot turn this into a join with all records.
    postgres: `
      select wanted.id, current.seq, current.added_in as "addedIn",
             ${bodyOfSize('current.body', 'wanted.size')} as body,
             ${bodyOfSize('closed.body', 'wanted.size')} as published
      from unnest($4::text[], $5::integer[]) with ordinality as wanted (id, size, place)
      cross join lateral (${current('wanted.id', 'seq, added_in, body')} limit 1) as current
      left join lateral (${closed('body', 'current')} limit 1) as closed on true
      order by wanted.place`,
  });
});

/**
 * The body unless it is too long to equal the one that came, else an empty text: `octet_length` does not read a long
 * body. A number may be stored with more digits than it comes with this time.
 */
function bodyOfSize(body: string, size: string): string {
  return `case when octet_length(${body}) > 4 * ${size} + 4096 then '' else ${body} end`;
}

/**
 * Looks up the ids of a batch (at most 500), after the previous batch has been staged. `sizes` are the UTF-8 lengths
 * of the incoming records, in the order of `ids`: a stored body that is much longer differs anyway and is returned as
 * '', so that 500 bodies of 1 MiB are never in memory. Without `sizes` every body is returned.
 */
export async function compare(
  view: View,
  { held, ids, sizes }: { held: AttemptLease; ids: readonly string[]; sizes?: readonly number[] },
): Promise<Compared> {
  if (ids.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  const look = async (db: Sql): Promise<Compared> => {
    const { workflowId, version } = await heldWorkflow(db, held);
    const rows = await forEach<ComparedRecord>(
      db,
      COMPARE,
      [held.teamId, workflowId, version],
      ids.map((id, place) => [id, sizes?.[place] ?? null]),
    );
    return { version, rows };
  };
  // Nobody else changes these rows. On SQLite many statements are twice as fast in one snapshot.
  return view.db.pick({ sqlite: () => view.db.snapshot(look), postgres: () => look(view.db) })();
}

const CURRENT = both(
  (pick) => `
  select seq from record
  where ${inWorkflow(pick)} and seq > $3 and seq <= $4 and coalesce(removed_in, 0) = 0 order by seq`,
);

/**
 * Which of the `rows` numbers after `afterSeq` are the `seq` of a current record, in order. Used to find the records
 * that a run did not bring.
 */
export async function currentSeqs(
  view: View,
  { held, afterSeq, rows }: { held: AttemptLease; afterSeq: number; rows: number },
): Promise<{ seqs: number[]; lastSeq: number; done: boolean }> {
  const { workflowId, nextSeq } = await heldWorkflow(view.db, held);
  const { teamId } = held;
  const end = afterSeq + rows;
  const found = await view.db.all<{ seq: number }>(CURRENT, teamId, workflowId, afterSeq, end);
  const lastSeq = found.length > 0 ? end : await beforeNext(view, { teamId, workflowId }, end);
  return { seqs: found.map(({ seq }) => seq), lastSeq, done: lastSeq >= nextSeq - 1 };
}
