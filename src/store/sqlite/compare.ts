/** Looks up what a run needs to decide what to write. Runs on a read-only connection. */

import type { ComparedRecord } from '../../model/staging.ts';
import { longestEqual } from '../longest-equal.ts';
import type { Compared, RecordOperations } from '../record-operations.ts';
import { beforeNext } from './records.ts';
import { heldWorkflow, MAX_BATCH } from './stage.ts';
import { snapshot, type View } from './transaction.ts';

type Input<Name extends keyof RecordOperations> = Parameters<RecordOperations[Name]>[0];

export function compare(view: View, { held, ids, sizes }: Input<'compare'>): Compared {
  if (ids.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  return snapshot(view, () => {
    const workflow = heldWorkflow(view, held);
    const version = workflow.current_version + 1;
    const rows: ComparedRecord[] = [];
    for (const [place, id] of ids.entries()) {
      const row = lookUp(view, workflow.number, version, id, sizes?.[place] ?? null);
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
function lookUp(
  view: View,
  workflow: number,
  version: number,
  id: string,
  size: number | null,
): ComparedRecord | undefined {
  const row = view.db.get<CurrentRow>(CURRENT, size, workflow, id);
  if (row === undefined) return undefined;
  const closed =
    row.added_in === version
      ? view.db.get<{ body: string }>(CLOSED, size, workflow, row.seq, version)
      : undefined;
  return { id, seq: row.seq, addedIn: row.added_in, body: row.body, published: closed?.body ?? null };
}

export function currentSeqs(
  view: View,
  { held, afterSeq, rows }: Input<'currentSeqs'>,
): { seqs: number[]; lastSeq: number; done: boolean } {
  const { number, next_seq } = heldWorkflow(view, held);
  const end = afterSeq + rows;
  const found = view.db.all<{ seq: number }>(
    'select seq from record where workflow = ? and seq > ? and seq <= ? and removed_in is null order by seq',
    number,
    afterSeq,
    end,
  );
  const lastSeq = found.length > 0 ? end : beforeNext(view, number, end);
  return { seqs: found.map(({ seq }) => seq), lastSeq, done: lastSeq >= next_seq - 1 };
}
