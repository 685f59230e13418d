/** Searches for a person in everything that may hold content of records, a bounded part at a time. */
import type { ErasureOperations, HeldText, RecordRow, TextPlace } from '../erasure-operations.ts';
import { PLACES, type Place } from '../text-places.ts';
import type { Value } from './database.ts';
import type { View } from './transaction.ts';
import { type WorkflowRow, workflowRow } from './workflows.ts';

type Input<Name extends keyof ErasureOperations> = Parameters<ErasureOperations[Name]>[0];
type Result<Name extends keyof ErasureOperations> = Awaited<ReturnType<ErasureOperations[Name]>>;

/** How many bytes of records one call scans: measured at some 5 ms. */
const MAX_SCANNED_BYTES = 2 * 1_048_576;
const MAX_SCANNED_ROWS = 1_000;
const FEW_NEEDLES = 4;
const RECORD_KEYS = `
  select seq, added_in as addedIn from record where workflow = ? and (seq, added_in) > (?, ?)
  order by seq, added_in limit ?`;
const RECORDS = `
  select id, seq, added_in as addedIn, removed_in as removedIn, body from record
  where workflow = ? and (seq, added_in) > (?, ?) and (seq, added_in) <= (?, ?)
    and (id in (select value from json_each(?))
         or exists (select 1 from json_each(?) needle where instr(lower(body), needle.value) > 0))
  order by seq, added_in`;

export function scanRecords(view: View, input: Input<'scanRecords'>): Result<'scanRecords'> {
  const workflow = workflowRow(view, input.teamId, input.workflowId);
  if (workflow === undefined) return { rows: [], next: null };
  const after = (input.after === null ? [0, 0] : JSON.parse(input.after)) as [number, number];
  const keys = view.db.all<{ seq: number; addedIn: number }>(
    RECORD_KEYS,
    workflow.number,
    ...after,
    rowsPerCall(Math.min(MAX_SCANNED_ROWS, MAX_SCANNED_BYTES / longest(view, workflow)), input.needles),
  );
  const last = keys.at(-1);
  if (last === undefined) return { rows: [], next: null };
  const upTo: [number, number] = [last.seq, last.addedIn];
  const rows = view.db.all<RecordRow>(
    RECORDS,
    workflow.number,
    ...after,
    ...upTo,
    JSON.stringify(input.ids),
    JSON.stringify(input.needles),
  );
  return { rows: rows.map((row) => ({ ...row })), next: JSON.stringify(upTo) };
}

/** Each text is searched for each needle: with many needles, fewer texts are scanned. */
function rowsPerCall(rows: number, needles: readonly string[]): number {
  return Math.max(1, Math.floor((rows * FEW_NEEDLES) / Math.max(FEW_NEEDLES, needles.length)));
}

/** Bytes of the longest record that the workflow may still hold. */
function longest(view: View, { team_id, id, staged_largest }: WorkflowRow): number {
  const { bytes } = view.db.get<{ bytes: number | null }>(
    'select max(largest) as bytes from version where team_id = ? and workflow_id = ?',
    team_id,
    id,
  ) ?? { bytes: null };
  return Math.max(1, bytes ?? 0, staged_largest);
}

/** The statements for each place, built once. */
const STATEMENTS = Object.fromEntries(
  Object.entries(PLACES).map(([name, place]) => [name, statements(place)]),
) as Record<TextPlace, ReturnType<typeof statements>>;

function statements({ table, keys, column, joins = '', workflow, about }: Place) {
  const list = keys.map((key) => `t.${key}`).join(', ');
  const marks = keys.map(() => '?').join(', ');
  const needle = (text: string) =>
    `exists (select 1 from json_each(?) needle where instr(lower(${text}), needle.value) > 0)`;
  return {
    keys: `select ${list} from ${table} t where t.team_id = ? and (${list}) > (${marks}) order by ${list} limit ?`,
    texts: `
      select ${list}, ${workflow} as workflow, t.${column} as text, ${about ?? 'null'} as about
      from ${table} t ${joins}
      where t.team_id = ? and (${list}) > (${marks}) and (${list}) <= (${marks}) and t.${column} is not null
        and (? is null or ${workflow} = ?) and ${needle(`t.${column} || ${about ?? `''`}`)}`,
    rewrite: `update ${table} as t set ${column} = ? where t.team_id = ? and (${list}) = (${marks}) and t.${column} = ?`,
  };
}

export function scanTexts(view: View, input: Input<'scanTexts'>): Result<'scanTexts'> {
  const { teamId, workflowId, place } = input;
  const { keys, first, rows } = PLACES[place];
  const after = (input.after === null ? first : JSON.parse(input.after)) as Value[];
  const last = view.db
    .all<Record<string, Value>>(STATEMENTS[place].keys, teamId, ...after, rowsPerCall(rows, input.needles))
    .at(-1);
  if (last === undefined) return { texts: [], next: null };
  const keyOf = (row: Record<string, Value>) => keys.map((key) => row[key] as Value);
  const found = view.db.all<Record<string, Value>>(
    STATEMENTS[place].texts,
    teamId,
    ...after,
    ...keyOf(last),
    workflowId,
    workflowId,
    JSON.stringify(input.needles),
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

/** The statement that replaces a text. Its values: new text, team, key columns, old text. */
export function rewriteStatement(place: TextPlace): string {
  return STATEMENTS[place].rewrite;
}
