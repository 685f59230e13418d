/** Looks up what a run needs to decide what to write. Runs on a read-only connection. */

import type { ComparedRecord } from '../../model/staging.ts';
import { longestEqual } from '../longest-equal.ts';
import { beforeNext } from '../operations/records.ts';
import type { Compared, RecordOperations } from '../record-operations.ts';
import type { View } from '../sql.ts';
import { heldWorkflow, MAX_BATCH } from './stage.ts';

type Input<Name extends keyof RecordOperations> = Parameters<RecordOperations[Name]>[0];

export async function compare(view: View, { held, ids, sizes }: Input<'compare'>): Promise<Compared> {
  if (ids.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  return view.db.snapshot(async (db) => {
    const workflow = await heldWorkflow({ ...view, db }, held);
    const version = workflow.current_version + 1;
    const rows: ComparedRecord[] = [];
    for (const [place, id] of ids.entries()) {
      const row = await lookUp(view, workflow.number, version, id, sizes?.[place] ?? null);
      if (row !== undefined) rows.push(row);
    }
    return { version, rows };
  });
}

interface CurrentRow {
  seq: number;
  added_in: number;
  body: string;
}

// `octet_length` reads only the header of a row, not a body of 1 MiB.
const BODY = `iif(octet_length(body) <= coalesce(${longestEqual('?')}, octet_length(body)), body, '') as body`;
const CURRENT = `
  select seq, added_in, ${BODY}
  from record where workflow = ? and id = ? and removed_in is null`;
const CLOSED = `
  select ${BODY}
  from record where workflow = ? and seq = ? and removed_in = ?`;

/** One query for each id: within a snapshot it costs some 3 µs, and needs no detour through JSON. */
async function lookUp(
  view: View,
  workflow: number,
  version: number,
  id: string,
  size: number | null,
): Promise<ComparedRecord | undefined> {
  const row = await view.db.get<CurrentRow>(CURRENT, size, workflow, id);
  if (row === undefined) return undefined;
  const closed =
    row.added_in === version
      ? await view.db.get<{ body: string }>(CLOSED, size, workflow, row.seq, version)
      : undefined;
  return { id, seq: row.seq, addedIn: row.added_in, body: row.body, published: closed?.body ?? null };
}

export async function currentSeqs(
  view: View,
  { held, afterSeq, rows }: Input<'currentSeqs'>,
): Promise<{ seqs: number[]; lastSeq: number; done: boolean }> {
  const { team_id: teamId, id: workflowId, number, next_seq } = await heldWorkflow(view, held);
  const end = afterSeq + rows;
  const found = await view.db.all<{ seq: number }>(
    'select seq from record where workflow = ? and seq > ? and seq <= ? and removed_in is null order by seq',
    number,
    afterSeq,
    end,
  );
  const lastSeq = found.length > 0 ? end : await beforeNext(view, { teamId, workflowId }, end);
  return { seqs: found.map(({ seq }) => seq), lastSeq, done: lastSeq >= next_seq - 1 };
}
