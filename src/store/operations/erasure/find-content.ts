/** Finds a person's data in everything that may contain content of records, in steps of limited size. */

import type { WorkflowRef } from '../../../model/workflow.ts';
import { both, type Pick, type Value } from '../../sql.ts';
import type { View } from '../../transaction.ts';
import { inWorkflow } from '../record-indexes.ts';

/** The text columns, besides the records themselves, that may contain content of records. */
export type TextPlace =
  | 'event'
  /** The body of a delivery that differs from that of its event. */
  | 'deliveryBody'
  /** What a rule has found out so far, why it sent nothing, and its last error. */
  | 'decisionProgress'
  | 'decisionReason'
  | 'ruleMistake'
  /** The id of a quiet record, and its text as it was sent and as it is now. */
  | 'quietRecord'
  | 'quietSent'
  | 'quietNewest'
  /** A receiver's response body. `attemptDetails` contains the response headers. */
  | 'response'
  | 'attemptDetails'
  | 'attemptError'
  /** Why a webhook was paused. */
  | 'pausedReason'
  | 'jobError'
  | 'jobLog'
  | 'jobProgress'
  /** What the run did not meet: values and record ids. */
  | 'jobFindings'
  /** The incremental state that a run has stored for the next run. */
  | 'state'
  /** The field names of a version. */
  | 'fields'
  /** The names of fields in a profile, and the extremes of its values. It contains no texts of records. */
  | 'profile'
  /** A record in a quarantine, and the values that its reasons quote. */
  | 'quarantined'
  | 'quarantineReasons'
  | 'inspectedRequest'
  | 'inspectedBody';

/**
 * A text found in one of these columns. `key` identifies the text's row; `about` contains the bodies to which a response
 * or an error belongs, one on each line.
 */
export interface HeldText {
  key: string;
  workflowId: string | null;
  text: string;
  about: string | null;
}

/** One stored state of a record. Versions from `addedIn` up to, but not including, `removedIn` contain it. */
export interface RecordRow {
  id: string;
  seq: number;
  addedIn: number;
  removedIn: number | null;
  body: string;
}

/** Maximum bytes of records that one step reads, which takes about 5 ms. */
const SCAN_BYTES = 2 * 1_048_576;
const SCAN_ROWS = 1_000;
const FEW_NEEDLES = 4;
const RECORD_KEYS = both(
  (pick) => `
  select seq, added_in as "addedIn" from record
  where ${inWorkflow(pick)} and (seq, added_in) > ($3::bigint, $4::integer)
  order by seq, added_in limit $5`,
);
const RECORDS = both(
  (pick) => `
  select id, seq, added_in as "addedIn", removed_in as "removedIn", body from record
  where ${inWorkflow(pick)}
    and (seq, added_in) > ($3::bigint, $4::integer) and (seq, added_in) <= ($5::bigint, $6::integer)
    and (id = any($7::text[]) or ${holdsNeedle(pick, 'body', '$8')})
  order by seq, added_in`,
);

/**
 * SQL that tests whether a text contains one of the needles, which must be in lower case. With the collation "C",
 * `lower` changes only ASCII letters.
 */
function holdsNeedle(pick: Pick, text: string, needles: string): string {
  const from = pick({
    sqlite: `json_each(${needles}) as needle`,
    postgres: `unnest(${needles}::text[]) as needle (value)`,
  });
  return `exists (select 1 from ${from}
                  where strpos(lower(${text} collate "C"), needle.value collate "C") > 0)`;
}

/**
 * Scans rows of all versions of a workflow after the cursor `after`, a limited number per call. Returns rows whose text
 * contains one of `needles` (with ASCII letters in lower case) or whose id is one of `ids`. `next` is null at the end.
 */
export async function scanRecords(
  view: View,
  input: {
    teamId: string;
    workflowId: string;
    needles: readonly string[];
    ids: readonly string[];
    after: string | null;
  },
): Promise<{ rows: RecordRow[]; next: string | null }> {
  const { teamId, workflowId } = input;
  const after = (input.after === null ? [0, 0] : JSON.parse(input.after)) as [number, number];
  const needles = storable(input.needles);
  const keys = await view.db.all<{ seq: number; addedIn: number }>(
    RECORD_KEYS,
    teamId,
    workflowId,
    ...after,
    rowsPerScan(Math.min(SCAN_ROWS, SCAN_BYTES / (await longest(view, input))), needles),
  );
  const last = keys.at(-1);
  if (last === undefined) return { rows: [], next: null };
  const upTo: [number, number] = [last.seq, last.addedIn];
  const rows = await view.db.all<RecordRow>(
    RECORDS,
    teamId,
    workflowId,
    ...after,
    ...upTo,
    storable(input.ids),
    needles,
  );
  return { rows, next: JSON.stringify(upTo) };
}

/** Leaves out texts that PostgreSQL rejects even as parameters. No record can contain such a text. */
function storable(texts: readonly string[]): string[] {
  return texts.filter((text) => !text.includes('\0') && text.isWellFormed());
}

/** Returns how many rows to scan. Each text is searched for every needle, so many needles mean fewer rows. */
function rowsPerScan(rows: number, needles: readonly string[]): number {
  return Math.max(1, Math.floor((rows * FEW_NEEDLES) / Math.max(FEW_NEEDLES, needles.length)));
}

/** Bytes of the longest record of the workflow. */
async function longest(view: View, { teamId, workflowId }: WorkflowRef): Promise<number> {
  const row = await view.db.get<{ bytes: number }>`
    select greatest(staged_largest, coalesce((
      select max(largest) from version where team_id = workflow.team_id and workflow_id = workflow.id), 0)) as bytes
    from workflow where team_id = ${teamId} and id = ${workflowId}`;
  return Math.max(1, row?.bytes ?? 0);
}

interface Place {
  /** The table, as `t`. */
  table: string;
  /** The primary key after `team_id`. */
  keys: readonly string[];
  /** Sorts before every key. */
  first: readonly (string | number)[];
  column: string;
  /** Rows scanned per call. */
  rows: number;
  /** A column with the bytes of the text, if it may be so long that a call scans fewer rows. */
  bytes?: string;
  joins?: string;
  /** SQL for the id of the row's workflow (default: the column `workflow_id`). */
  workflow?: string;
  /** SQL for `HeldText.about`. */
  about?: string;
  /** SQL for whether a row without a workflow may be about any, because it is about a digest of all workflows. */
  ofAny?: string;
  /** Whether an empty text deletes the row. */
  deletes?: true;
}

const OF_A_DIGEST = `event.type = 'webhook_digest'`;

const OF_AN_ATTEMPT = {
  table: 'attempt',
  keys: ['delivery_id', 'number'],
  first: ['', 0],
  rows: 100,
  joins: `join delivery on delivery.team_id = t.team_id and delivery.id = t.delivery_id
          join event on event.team_id = t.team_id and event.sequence = delivery.event_sequence`,
  workflow: 'event.workflow_id',
  ofAny: OF_A_DIGEST,
  about: `(event.body || coalesce('\n' || delivery.body, ''))`,
} as const;
const OF_A_DECISION = {
  table: 'decision',
  keys: ['event_sequence', 'webhook_id'],
  first: [0, ''],
  rows: 200,
  joins: 'join event on event.team_id = t.team_id and event.sequence = t.event_sequence',
  workflow: 'event.workflow_id',
} as const;
const OF_A_QUIET_RECORD = {
  table: 'quiet_record',
  keys: ['webhook_id', 'workflow_id', 'record_key'],
  first: ['', '', ''],
  rows: 200,
  deletes: true,
} as const;
/** Makes a text match if a person has too many ids to search for each. */
const OF_ANY_ID = `'"differences":[{'`;
const OF_A_JOB = { table: 'job', keys: ['id'], first: [''], rows: 500 } as const;
const OF_THE_QUARANTINE = {
  table: 'quarantined',
  keys: ['workflow_id', 'added_in', 'position'],
  first: ['', 0, 0],
  rows: 100,
} as const;
const OF_AN_INSPECTOR = {
  table: 'inspected_request',
  keys: ['inspector_id', 'number'],
  first: ['', 0],
  rows: 20,
} as const;

const PLACES: Readonly<Record<TextPlace, Place>> = {
  event: {
    table: 'event',
    keys: ['sequence'],
    first: [0],
    column: 'body',
    rows: 200,
    ofAny: `t.type = 'webhook_digest'`,
  },
  deliveryBody: {
    table: 'delivery',
    keys: ['id'],
    first: [''],
    column: 'body',
    rows: 200,
    joins: 'join event on event.team_id = t.team_id and event.sequence = t.event_sequence',
    workflow: 'event.workflow_id',
    ofAny: OF_A_DIGEST,
    about: 'event.body',
  },
  decisionProgress: { ...OF_A_DECISION, column: 'progress' },
  decisionReason: { ...OF_A_DECISION, column: 'reason' },
  // Ids are searched for as they are written in events.
  ruleMistake: {
    table: 'webhook',
    keys: ['id'],
    first: [''],
    column: 'rule_mistake',
    rows: 500,
    about: `replace(t.rule_mistake, 'recordId":', '"id":')`,
  },
  quietRecord: {
    ...OF_A_QUIET_RECORD,
    column: 'record_id',
    about: `'"differences":[{"id":"' || t.record_id || '"'`,
  },
  // Of another person's record, only what belongs to this person is erased: nothing.
  quietSent: { ...OF_A_QUIET_RECORD, column: 'sent', about: OF_ANY_ID },
  quietNewest: { ...OF_A_QUIET_RECORD, column: 'newest', about: OF_ANY_ID },
  response: { ...OF_AN_ATTEMPT, column: 'response' },
  attemptDetails: { ...OF_AN_ATTEMPT, column: 'details' },
  attemptError: { ...OF_AN_ATTEMPT, column: 'error' },
  pausedReason: { table: 'webhook', keys: ['id'], first: [''], column: 'paused_reason', rows: 500 },
  jobError: { ...OF_A_JOB, column: 'error' },
  jobLog: {
    table: 'job_log',
    keys: ['job_id', 'attempt', 'part', 'seq'],
    first: ['', 0, 0, 0],
    column: 'body',
    rows: 20,
    joins: 'join job on job.team_id = t.team_id and job.id = t.job_id',
    workflow: 'job.workflow_id',
  },
  jobProgress: { ...OF_A_JOB, column: 'progress' },
  jobFindings: { ...OF_A_JOB, column: 'findings' },
  state: { table: 'workflow', keys: ['id'], first: [''], column: 'state', rows: 10, workflow: 't.id' },
  fields: { table: 'version', keys: ['workflow_id', 'number'], first: ['', 0], column: 'fields', rows: 200 },
  profile: {
    table: 'profile',
    keys: ['workflow_id', 'version'],
    first: ['', 0],
    column: 'body',
    rows: 100,
  },
  quarantined: { ...OF_THE_QUARANTINE, column: 'body', bytes: 'bytes', deletes: true, about: OF_ANY_ID },
  quarantineReasons: { ...OF_THE_QUARANTINE, column: 'reasons' },
  inspectedRequest: { ...OF_AN_INSPECTOR, column: 'request' },
  inspectedBody: { ...OF_AN_INSPECTOR, column: 'body' },
};

/** The statements of each place. */
const STATEMENTS = Object.fromEntries(
  Object.entries(PLACES).map(([name, place]) => [name, statements(place)]),
) as Record<TextPlace, ReturnType<typeof statements>>;

function statements(place: Place) {
  const { table, keys, column, bytes, joins = '', workflow = 't.workflow_id', about, ofAny, deletes } = place;
  const ofAnyWorkflow = ofAny === undefined ? '' : `or (${workflow} is null and ${ofAny})`;
  const list = keys.map((key) => `t.${key}`).join(', ');
  const marks = (first: number) => keys.map((_, n) => `$${first + n}`).join(', ');
  const then = 2 + keys.length;
  return {
    keys: `
      select ${list}${bytes === undefined ? '' : `, t.${bytes} as bytes`} from ${table} t where t.team_id = $1 and (${list}) > (${marks(2)})
      order by ${list} limit $${then}`,
    texts: both(
      (pick) => `
      select ${list}, ${workflow} as workflow, t.${column} as text, ${about ?? 'null'} as about
      from ${table} t ${joins}
      where t.team_id = $1 and (${list}) > (${marks(2)}) and (${list}) <= (${marks(then)})
        and t.${column} is not null
        and (${workflow} is not distinct from coalesce($${then + keys.length}::text, ${workflow}) ${ofAnyWorkflow})
        and ${holdsNeedle(pick, `(t.${column} || ${about ?? `''`})`, `$${then + keys.length + 1}`)}`,
    ),
    rewrite: `
      update ${table} as t set ${column} = $2
      where t.team_id = $1 and (${list}) = (${marks(4)}) and t.${column} = $3`,
    delete:
      deletes &&
      `delete from ${table} as t where t.team_id = $1 and (${list}) = (${marks(3)}) and t.${column} = $2`,
  };
}

/** Like `scanRecords`, but scans the texts of a place. A text also matches if its `about` contains a needle. */
export async function scanTexts(
  view: View,
  input: {
    teamId: string;
    workflowId: string | null;
    place: TextPlace;
    needles: readonly string[];
    after: string | null;
  },
): Promise<{ texts: HeldText[]; next: string | null }> {
  const { teamId, workflowId, place } = input;
  const { keys, first, rows } = PLACES[place];
  const after = (input.after === null ? first : JSON.parse(input.after)) as Value[];
  const needles = storable(input.needles);
  const scanned = await view.db.all<Record<string, Value>>(
    STATEMENTS[place].keys,
    teamId,
    ...after,
    rowsPerScan(rows, needles),
  );
  let bytes = 0;
  const last =
    scanned.find((row) => {
      bytes += Number(row.bytes ?? 0);
      return bytes >= SCAN_BYTES;
    }) ?? scanned.at(-1);
  if (last === undefined) return { texts: [], next: null };
  const keyOf = (row: Record<string, Value>) => keys.map((key) => row[key] as Value);
  const found = await view.db.all<Record<string, Value>>(
    STATEMENTS[place].texts,
    teamId,
    ...after,
    ...keyOf(last),
    workflowId,
    needles,
  );
  const texts = found.map(
    (row): HeldText => ({
      key: JSON.stringify(keyOf(row)),
      workflowId: row.workflow as string | null,
      text: row.text as string,
      about: row.about as string | null,
    }),
  );
  return { texts, next: JSON.stringify(keyOf(last)) };
}

/** The statement that replaces a text. Parameters: the team, the new text, the old text, and the key. */
export function rewriteStatement(place: TextPlace): string {
  return STATEMENTS[place].rewrite;
}

/**
 * The statement that deletes the row of a text, in places where an empty text means this. Parameters: the team, the text,
 * and the key.
 */
export function deleteStatement(place: TextPlace): string | undefined {
  return STATEMENTS[place].delete;
}

/** Every table that may contain content of records. */
export const CONTENT_TABLES: readonly string[] = [
  ...new Set(['record', ...Object.values(PLACES).map(({ table }) => table)]),
];
