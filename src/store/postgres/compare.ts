/** What a run reads before it can decide what to write: the rows of given ids, and all current rows. */
import type { Held } from '../../model/job.ts';
import type { ComparedRecord } from '../../model/staging.ts';
import { longestEqual } from '../longest-equal.ts';
import { fenced } from '../operations/jobs.ts';
import { hasId, ofWorkflow } from '../operations/record-indexes.ts';
import { beforeNext } from '../operations/records.ts';
import type { Compared } from '../record-operations.ts';
import { both, type View } from '../sql.ts';
import { MAX_BATCH } from './stage.ts';

/** The workflow that an attempt writes to; no row when the attempt no longer runs. */
const HELD = `
  held as materialized (
    select workflow.id as workflow_id, workflow.current_version + 1 as version, workflow.next_seq
    from job
    join workflow on workflow.team_id = job.team_id and workflow.id = job.workflow_id
    where job.team_id = $1 and job.id = $2 and job.attempt = $3 and job.state = 'running')`;

// Each id is looked up by itself: because of the `limit` the planner cannot turn this into a join with all records.
const COMPARE = both(
  (pick) => `
  with ${HELD}
  select held.version, found.id, found.seq, found."addedIn", found.body, found.published
  from held
  left join (
    select wanted.place, wanted.id, current.seq, current.added_in as "addedIn",
           ${bodyOfSize('current.body')} as body, ${bodyOfSize('closed.body')} as published
    from held
    cross join unnest($4::text[], $5::integer[]) with ordinality as wanted (id, size, place)
    cross join lateral (
      select seq, added_in, body from record
      where ${ofWorkflow(pick, 'current', 'record', 'held.workflow_id')} and ${hasId(pick, 'wanted.id')}
      limit 1) as current
    left join lateral (
      select body from record
      where team_id = $1 and workflow_id = held.workflow_id and seq = current.seq
        and removed_in + 0 = held.version and current.added_in = held.version
      limit 1) as closed on true
  ) as found on true
  order by found.place`,
);

/** The body unless it is much longer than wanted, else an empty text: `octet_length` does not read a long body. */
function bodyOfSize(body: string): string {
  return `case when octet_length(${body}) > ${longestEqual('wanted.size')} then '' else ${body} end`;
}

export async function compare(
  view: View,
  { held, ids, sizes }: { held: Held; ids: readonly string[]; sizes?: readonly number[] },
): Promise<Compared> {
  if (ids.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  const rows = await view.db.all<{ version: number } & (ComparedRecord | { id: null })>(
    COMPARE,
    held.teamId,
    held.jobId,
    held.attempt,
    ids,
    sizes ?? ids.map(() => null),
  );
  const [first] = rows;
  if (first === undefined) throw fenced(held);
  return {
    version: first.version,
    rows: rows.filter((row) => row.id !== null).map(({ version: _, ...row }) => row),
  };
}

const CURRENT = `
  with ${HELD}
  select held.workflow_id as "workflowId", held.next_seq as "nextSeq", found.seq
  from held
  left join lateral (
    select seq from record
    where team_id = $1 and workflow_id = held.workflow_id and seq > $4 and seq <= $5
      and coalesce(removed_in, 0) = 0
    order by seq limit $5) as found on true
  order by found.seq`;

export async function currentSeqs(
  view: View,
  { held, afterSeq, rows }: { held: Held; afterSeq: number; rows: number },
): Promise<{ seqs: number[]; lastSeq: number; done: boolean }> {
  const { teamId, jobId, attempt } = held;
  const end = afterSeq + rows;
  const found = await view.db.all<{ workflowId: string; nextSeq: number; seq: number | null }>(
    CURRENT,
    teamId,
    jobId,
    attempt,
    afterSeq,
    end,
  );
  const [first] = found;
  if (first === undefined) throw fenced(held);
  const { workflowId, nextSeq } = first;
  const seqs = found.map(({ seq }) => seq).filter((seq) => seq !== null);
  const lastSeq = seqs.length > 0 ? end : await beforeNext(view, { teamId, workflowId }, end);
  return { seqs, lastSeq, done: lastSeq >= nextSeq - 1 };
}
