/** `flowhook data changes|versions|history`: what changed between versions, and what happened to one record. */
import type { Flowhook, FlowhookError, RecordChange } from '../../../client/src/flowhook-client.ts';
import { CHANGE_TYPES } from '../../model/same-json.ts';
import type { ChangesFormat } from '../../records/read-changes.ts';
import { countWords } from '../../std/amounts.ts';
import { nearest } from '../../std/nearest.ts';
import type { Command } from '../command.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { momentFrom, type Options, repeated, someOf } from '../options.ts';
import { onTarget, onWorkflow, type Target } from '../target.ts';
import { type Head, print, say, table, toOutput } from '../terminal.ts';

const MOMENT = 'a version, a time, or a day such as tuesday or 7d (UTC)';

/** @param command adds a command of `flowhook data` on a workflow */
export function addHistory(command: (name: string, description: string) => Command): void {
  const changes = command(
    'changes',
    'print the changes of records since a version or a time, one JSON object per line (with --json: one array)',
  )
    .withExamples(
      'data changes people --since 3',
      'data changes prices --since tuesday --field price',
      'data changes prices --since 2026-11-17 --until 2026-11-20 --type changed --csv > changes.csv',
    )
    .requiredOption('--since <moment>', `changes after this moment: ${MOMENT}`)
    .option('--until <moment>', 'changes up to this moment (default: the newest version)')
    .option('--type <types>', `only changes of these types (comma-separated): ${CHANGE_TYPES.join(', ')}`)
    .withValues('--type', CHANGE_TYPES)
    .option('--field <name>', 'only changes of this field (repeatable)', repeated)
    .option('--filter <expression>', 'only changes that match')
    .option('--csv', 'print CSV, with a line for each field');
  onTarget(changes, getChanges, { check: (_workflow: string, options) => void wantedFrom(options) });

  onTarget(
    command('versions', 'list the readable versions of a workflow, newest first').withExamples(
      'data versions people',
    ),
    listVersions,
  );

  const history = command('history', 'list what the versions of a workflow did with one record, newest first')
    .withExamples('data history people 17')
    .argument('<record>', 'id of the record');
  onTarget(history, getHistory);
}

/** @throws UsageError */
function wantedFrom(options: Options) {
  if (options.csv === true && options.json === true) throw new UsageError('Give either --csv or --json');
  const nowMs = Date.now();
  return {
    since: momentFrom('--since', options.since, nowMs) as number | Date,
    until: momentFrom('--until', options.until, nowMs),
    type: someOf('--type', options.type, CHANGE_TYPES),
    field: options.field as string[] | undefined,
    filter: options.filter === undefined ? undefined : String(options.filter),
  };
}

async function getChanges(target: Target, workflow: string, options: Options): Promise<void> {
  const format: ChangesFormat = options.csv === true ? 'csv' : options.json === true ? 'json' : 'ndjson';
  const wanted = wantedFrom(options);
  await onWorkflow(target, workflow, async ({ client }, id) => {
    const { body, headers } = await client.workflows.changesAs(format, id, wanted);
    if (wanted.since instanceof Date || wanted.until instanceof Date) {
      say(`changes from version ${headers.get('x-since-version')} to ${headers.get('x-data-version')}`);
    }
    if (body !== null) await toOutput(body, format === 'json' ? '\n' : '');
    for (const field of wanted.field ?? []) await sayUnknown(client, id, field);
  });
}

/** Says if no recent run had the field, because the changes of a misspelled field are none. */
async function sayUnknown(client: Flowhook, workflow: string, field: string): Promise<void> {
  const { profiles } = await client.workflows.profile(workflow);
  const names = [...new Set(profiles.flatMap(({ fields }) => fields.map(({ name }) => name)))];
  const [whole = ''] = field.split('.', 1);
  const isPath = whole !== field && names.includes(whole);
  if (profiles.length === 0 || profiles.some(({ omitted }) => omitted > 0)) return;
  if (isPath) say(`--field takes whole fields, such as ${whole}, and no paths`);
  else if (!names.includes(field)) {
    const meant = nearest(field, names);
    say(
      `No record of the newest versions has a field "${field}"${meant === undefined ? '' : `. Did you mean ${meant}?`}`,
    );
  }
}

async function listVersions(target: Target, workflow: string, options: Options): Promise<void> {
  const found = await onWorkflow(target, workflow, ({ client }, id) =>
    Array.fromAsync(client.workflows.versions(id, { limit: 1_000 })),
  );
  const versions = found.map(({ number, ...rest }) => ({ version: number, ...rest }));
  const rows = versions.map(
    ({ version, publishedAt, jobId, records: { total, added, changed, removed } }) => [
      String(version),
      publishedAt,
      jobId,
      `${countWords(total, 'record')}: +${added} ~${changed} -${removed}`,
    ],
  );
  print(options, versions, table(rows, process.stdout.columns, VERSION_HEADS));
}

const VERSION_HEADS: readonly Head[] = [
  { name: 'version' },
  { name: 'published' },
  { name: 'job', drop: 1 },
  { name: 'records' },
];

async function getHistory(target: Target, workflow: string, record: string, options: Options): Promise<void> {
  const changes = await onWorkflow(target, workflow, ({ client }, id) =>
    Array.fromAsync(client.workflows.recordHistory(id, record, { limit: 1_000 })).catch(
      (error: FlowhookError) => {
        if (error.code !== 'record_not_found') throw error;
        throw new NotFoundError(
          `No version of ${id} that is stored has a record "${record}". \`flowhook data get ${id}\` prints the records`,
        );
      },
    ),
  );
  const rows = changes.map((change) => [
    String(change.version),
    change.publishedAt,
    change.type,
    oneLine(valuesOf(change), 200),
  ]);
  print(options, changes, table(rows, process.stdout.columns, CHANGE_HEADS));
}

const CHANGE_HEADS: readonly Head[] = [
  { name: 'version' },
  { name: 'published' },
  { name: 'change' },
  { name: 'values' },
];

/** `price: 10 → 12, stock: 3 → nothing`, or all values of a record that appeared. */
function valuesOf({ type, record, fields = [] }: RecordChange): string {
  if (record !== undefined) return JSON.stringify(record);
  if (type === 'removed') return '';
  const written = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));
  return fields
    .map(({ key, value, previousValue }) => {
      const [before, after] = [written(previousValue), written(value)];
      // With `compare: text`, 1.0 and 1 differ, and are the same number here.
      return before === after ? `${key}: ${after}, written differently` : `${key}: ${before} → ${after}`;
    })
    .join(', ');
}
