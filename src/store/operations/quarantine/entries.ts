/** The quarantine of a workflow, as readers see it: finding entries, and deleting them by hand. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Quarantined } from '../../../model/quality/quarantine.ts';
import type { WorkflowRef } from '../../../model/workflow.ts';
import { both, forEach, MAX_BATCH_BYTES, type Value } from '../../sql.ts';
import type { Tx, View } from '../../transaction.ts';
import { hasId, ofWorkflow, recordKey } from '../record-indexes.ts';

/** Selects entries of a workflow's quarantine. Every condition that is given must hold. */
export interface QuarantineSelection {
  /** Ids of records, at most 1,000. */
  ids?: readonly string[] | undefined;
  /** The job that set the record aside. */
  jobId?: string | undefined;
  /** A field that a reason names. */
  field?: string | undefined;
  /** Leaves out what later jobs than this one have set aside. */
  untilJobId?: string | undefined;
}

/** The last entry of a page. Entries are ordered from the newest to the oldest. */
export interface QuarantineCursor {
  /** The number of the run, among those that changed the quarantine. */
  run: number;
  position: number;
}

/** Rows whose conditions one statement checks. */
const SCAN_ROWS = 1_000;
/** Bytes of records that one page has, unless a single record has more. */
const PAGE_BYTES = 1_048_576;
const NEWEST: QuarantineCursor = { run: 2_147_483_647, position: 0 };

const RUN = '(select quarantine_run from workflow where team_id = $1 and id = $2)';
const VISIBLE = `
  team_id = $1 and workflow_id = $2 and added_in <= ${RUN} and (removed_in is null or removed_in > ${RUN})`;
const SELECTED = `
  ($5::text[] is null or record_key = any($5)) and ($6::text is null or job_id = $6)
  and ($7::text is null or strpos(reasons, $7) > 0) and ($8::text is null or job_id <= $8)`;
const SCAN = `
  select added_in as run, position, bytes, (${SELECTED}) as "isSelected" from quarantined
  where ${VISIBLE} and (added_in, position) < ($3, $4)
  order by added_in desc, position desc limit ${SCAN_ROWS}`;
const ENTRY = `
  job_id as "jobId", position, record_id as id, bytes, created_at as "setAsideAt", reasons, body`;
const ENTRIES = `
  select ${ENTRY} from quarantined
  where ${VISIBLE} and (added_in, position) < ($3, $4) and (added_in, position) >= ($9, $10) and ${SELECTED}
  order by added_in desc, position desc`;

type EntryRow = Omit<Quarantined, 'reasons'> & { reasons: string };

function toEntry({ reasons, ...row }: EntryRow): Quarantined {
  return { ...row, reasons: JSON.parse(reasons) };
}

interface Key extends QuarantineCursor {
  bytes: number;
}

/**
 * Lists the entries of a workflow's quarantine, newest first: up to `limit`, and fewer if they are large. `next` is null
 * after the last entry.
 */
export async function list(
  view: View,
  input: WorkflowRef & QuarantineSelection & { after?: QuarantineCursor | undefined; limit: number },
): Promise<{ entries: Quarantined[]; next: QuarantineCursor | null }> {
  const { after = NEWEST, limit } = input;
  const { found, next } = await firstSelected(view, input, {
    after,
    rows: limit,
    bytes: PAGE_BYTES,
    turn: nextTurn,
  });
  const last = found.at(-1);
  if (last === undefined) return { entries: [], next: null };
  const rows = await view.db.all<EntryRow>(ENTRIES, ...given(input, after), last.run, last.position);
  return { entries: rows.map(toEntry), next };
}

/**
 * Finds the first selected entries after a cursor: up to `rows`, and as many as have `bytes` together, but at least one.
 * `next` is null if no other entry is selected. `turn` is awaited between statements; a transaction has none.
 */
async function firstSelected(
  view: View,
  input: WorkflowRef & QuarantineSelection,
  most: { after: QuarantineCursor; rows: number; bytes: number; turn?: () => Promise<void> },
): Promise<{ found: Key[]; next: QuarantineCursor | null }> {
  const found: Key[] = [];
  let bytes = 0;
  for (let { after } = most; ; await most.turn?.()) {
    const scanned = await view.db.all<Key & { isSelected: boolean }>(SCAN, ...given(input, after));
    for (const { isSelected, ...key } of scanned) {
      if (!isSelected) continue;
      bytes += key.bytes;
      const last = found.at(-1);
      if (last !== undefined && (found.length >= most.rows || bytes > most.bytes))
        return { found, next: { run: last.run, position: last.position } };
      found.push(key);
    }
    const last = scanned.at(-1);
    if (scanned.length < SCAN_ROWS || last === undefined) return { found, next: null };
    after = last;
  }
}

/** The first eight values of `SCAN` and `ENTRIES`. */
function given(
  { teamId, workflowId, ids, jobId, field, untilJobId }: WorkflowRef & QuarantineSelection,
  { run, position }: QuarantineCursor,
): Value[] {
  // Quotes within texts are escaped in JSON, so that only a member `field` matches.
  const member = field === undefined ? null : `"field":${JSON.stringify(field)}`;
  return [
    teamId,
    workflowId,
    run,
    position,
    ids?.map(recordKey) ?? null,
    jobId ?? null,
    member,
    untilJobId ?? null,
  ];
}

/** Which of these records are in the quarantine, each with the job that set it aside. */
export function find(
  view: View,
  { teamId, workflowId, ids }: WorkflowRef & { ids: readonly string[] },
): Promise<{ id: string; jobId: string }[]> {
  return view.db.all(
    `select record_id as id, job_id as "jobId" from quarantined /* use quarantined_record */
     where ${VISIBLE} and record_key = any($3::text[])`,
    teamId,
    workflowId,
    ids.map(recordKey),
  );
}

/** The number of entries in the quarantine of a workflow. */
export async function count(view: View, { teamId, workflowId }: WorkflowRef): Promise<number> {
  const row = await view.db.get<{ count: number }>(
    `select count(*) as count from quarantined where ${VISIBLE}`,
    teamId,
    workflowId,
  );
  return row?.count ?? 0;
}

/** The entry of the record with this id. */
export async function get(
  view: View,
  { teamId, workflowId, id }: WorkflowRef & { id: string },
): Promise<Quarantined | undefined> {
  const row = await view.db.get<EntryRow>(
    `select ${ENTRY} from quarantined /* use quarantined_record */ where ${VISIBLE} and record_key = $3`,
    teamId,
    workflowId,
    recordKey(id),
  );
  return row && toEntry(row);
}

/** SQL for a column of the record with an id in the current version. */
const ofPublished = (column: string) =>
  both((pick) => {
    const [is, current] = [hasId(pick, '$3'), 'workflow.current_version'];
    const row = (condition: string) => `select ${column} from record ${condition} limit 1`;
    return `
    select coalesce(
      (${row(`/* use record_current */ where ${ofWorkflow(pick, 'current')} and ${is} and added_in <= ${current}`)}),
      (${row(`/* use record_closed */ where ${ofWorkflow(pick, 'closed')} and ${is} and added_in <= ${current}
        and removed_in + 0 > ${current}`)})) as found
    from workflow where team_id = $1 and id = $2`;
  });
const PUBLISHED = ofPublished('body');
const PUBLISHED_SEQ = ofPublished('seq');

/** The JSON text of the record with this id in the current version; undefined if there is none. */
export async function published(
  view: View,
  { teamId, workflowId, id }: WorkflowRef & { id: string },
): Promise<string | undefined> {
  return (await view.db.get<{ found: string | null }>(PUBLISHED, teamId, workflowId, id))?.found ?? undefined;
}

/** Whether the current version has a record with this id. Does not read the record, which may have 1 MiB. */
export async function isPublished(
  view: View,
  { teamId, workflowId, id }: WorkflowRef & { id: string },
): Promise<boolean> {
  const row = await view.db.get<{ found: number | null }>(PUBLISHED_SEQ, teamId, workflowId, id);
  return row !== undefined && row.found !== null;
}

const DELETE = {
  sqlite:
    'delete from quarantined where team_id = $1 and workflow_id = $2 and added_in = $3 and position = $4',
  postgres: `
    delete from quarantined using unnest($3::integer[], $4::integer[]) as dropped (added_in, position)
    where team_id = $1 and workflow_id = $2
      and quarantined.added_in = dropped.added_in and quarantined.position = dropped.position`,
};

/**
 * Deletes selected entries, the newest first: up to `limit`, and about 1 MiB. Call until `done`. Returns the number of
 * deleted entries.
 */
export async function drop(
  tx: Tx,
  input: WorkflowRef & QuarantineSelection & { limit: number },
): Promise<{ dropped: number; done: boolean }> {
  const { teamId, workflowId, limit } = input;
  const { found, next } = await firstSelected(tx, input, {
    after: NEWEST,
    rows: limit,
    bytes: MAX_BATCH_BYTES,
  });
  await forEach(
    tx.db,
    DELETE,
    [teamId, workflowId],
    found.map(({ run, position }) => [run, position]),
  );
  return { dropped: found.length, done: next === null };
}
