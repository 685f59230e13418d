/** `flowhook quarantine`: records that did not meet an expectation, and were set aside. */
import type {
  Flowhook,
  FlowhookError,
  QuarantinedRecord,
  QuarantineSelection,
} from '../../../client/src/flowhook-client.ts';
import { CONFLICT_WORDS, type Conflict } from '../../jobs/accept-quarantined.ts';
import { countWords } from '../../std/amounts.ts';
import type { Command } from '../command.ts';
import { NotFoundError, pausedError, UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { type Options, oneOf, wholeNumber } from '../options.ts';
import { onTarget, onWorkflow, type Target } from '../target.ts';
import { addYes, confirm, fields, type Head, print, say, table, toOutput } from '../terminal.ts';
import { dateWords } from '../times.ts';

const FORMATS = ['ndjson', 'csv'] as const;
const USUAL_LIMIT = 20;
const MAX_REASONS_SHOWN = 100;

export function addQuarantine(program: Command): void {
  const quarantine = program
    .command('quarantine')
    .description('list, accept and drop records that runs have set aside, because they were not as expected');
  const one = (name: string, description: string) =>
    quarantine.command(name).description(description).argument('<workflow>', 'id of the workflow');
  const addTeam = (to: Command) =>
    to.option('--team <slug>', 'team of the workflow, if several teams have a workflow with this id');
  const addFilters = (to: Command) =>
    addTeam(to)
      .option('--job <id>', 'only what this job has set aside')
      .option('--field <name>', 'only records with a reason about this field');

  const list = addFilters(one('list', 'list the records with the reasons, newest first'))
    .withExamples('quarantine list people', 'quarantine list people --field price --limit 100')
    .option('--limit <number>', `maximum number of records (default: ${USUAL_LIMIT})`);
  onTarget(list, listRecords, { check: (_workflow: string, options) => void limitFrom(options) });
  onTarget(
    addTeam(
      one('show', 'print a record, the reasons, and the published record with the same id')
        .argument('<record>', 'id of the record')
        .withExamples('quarantine show people 17'),
    ),
    showRecord,
  );
  const download = addFilters(
    one('download', 'print all records with the reasons, as one JSON object per line or as CSV'),
  )
    .withExamples(
      'quarantine download people --format csv > people.csv',
      'quarantine download people --field price > people.ndjson',
    )
    .option('--format <format>', `${FORMATS.join(', ')} (default: ndjson)`)
    .withValues('--format', FORMATS);
  onTarget(download, downloadRecords, { check: (_workflow: string, options) => void formatFrom(options) });

  const decide = (name: 'accept' | 'drop', description: string) =>
    addYes(
      addFilters(
        one(name, description)
          .argument('[records...]', 'ids of the records')
          .option('--all', 'all records, or all that --job and --field select')
          .withExamples(`quarantine ${name} people 17 18`, `quarantine ${name} people --all --yes`),
      ),
    );
  const check = (_workflow: string, ids: string[], options: Options) => void selectionFrom(ids, options);
  onTarget(decide('accept', 'publish records as they are, without checking expectations'), acceptRecords, {
    check,
  });
  onTarget(decide('drop', 'delete records from the quarantine; nothing is published'), dropRecords, {
    check,
  });
}

const HEADS: readonly Head[] = [
  { name: 'record' },
  { name: 'set aside', drop: 2 },
  { name: 'job', drop: 1 },
  { name: 'reasons' },
];

async function listRecords(target: Target, workflow: string, options: Options): Promise<void> {
  const limit = limitFrom(options);
  await onWorkflow(target, workflow, async ({ client }, id) => {
    const found = await client.quarantine.list(id, { ...filterFrom(options), limit }).take(limit + 1);
    const shown = found.slice(0, limit);
    const rows = shown.map((entry) => [
      entry.id,
      entry.setAsideAt,
      entry.jobId,
      oneLine(reasonsOf(entry), MAX_REASONS_SHOWN),
    ]);
    print(options, shown, table(rows, process.stdout.columns, HEADS));
    if (options.json === true) return;
    if (shown.length === 0) say(nothingIn(id, filterFrom(options)));
    else if (found.length > limit)
      say('There are more: raise --limit, or use `flowhook quarantine download`');
  });
}

async function showRecord(target: Target, workflow: string, record: string, options: Options): Promise<void> {
  await onWorkflow(target, workflow, async ({ client }, id) => {
    const entry = await client.quarantine.get(id, record).catch((error: FlowhookError) => {
      if (error.code !== 'quarantined_not_found') throw error;
      throw new NotFoundError(
        `No record "${record}" in the quarantine of ${id}. \`flowhook quarantine list ${id}\` shows them`,
      );
    });
    const lines = fields([
      ['record', entry.id],
      ['job', entry.jobId],
      ['set aside', dateWords(entry.setAsideAt, Date.now())],
      ...entry.reasons.map(({ message }, at) => [at === 0 ? 'reasons' : '', message] as const),
      ['quarantine', JSON.stringify(entry.record)],
      ['published', entry.published === null ? 'no record with this id' : JSON.stringify(entry.published)],
    ]);
    print(options, entry, lines);
  });
}

async function downloadRecords(target: Target, workflow: string, options: Options): Promise<void> {
  const format = formatFrom(options);
  await onWorkflow(target, workflow, async ({ client }, id) => {
    const { body } = await client.quarantine.as(format, id, filterFrom(options));
    if (body !== null) await toOutput(body);
  });
}

async function acceptRecords(
  target: Target,
  workflow: string,
  ids: string[],
  options: Options,
): Promise<void> {
  const given = selectionFrom(ids, options);
  await onWorkflow(target, workflow, async ({ client }, id) => {
    const selection = await untilNow(client, id, given);
    await confirm(options, {
      what: `${wordsOf(selection)} in the quarantine of ${id} will be published as ${isOne(selection) ? 'it is' : 'they are'}`,
      otherwise: 'nothing was published',
    });
    const done = await client.quarantine.accept(id, selection).catch((error: FlowhookError) => {
      throw error.code === 'workflow_paused' ? pausedError(id, error) : error;
    });
    const { accepted, version, jobId, conflicts } = done;
    print(options, done, [`accepted ${countWords(accepted, 'record')}: version ${version}, job ${jobId}`]);
    sayConflicts(conflicts);
  });
}

async function dropRecords(target: Target, workflow: string, ids: string[], options: Options): Promise<void> {
  const given = selectionFrom(ids, options);
  await onWorkflow(target, workflow, async ({ client }, id) => {
    const selection = await untilNow(client, id, given);
    await confirm(options, {
      what: `${wordsOf(selection)} will be permanently deleted from the quarantine of ${id}`,
      otherwise: 'nothing was deleted',
    });
    const done = await client.quarantine.drop(id, selection);
    print(options, done, [`dropped ${countWords(done.dropped, 'record')}`]);
    sayConflicts(done.conflicts);
  });
}

/** Leaves out what runs set aside while the user confirms. */
async function untilNow(
  client: Flowhook,
  id: string,
  selection: QuarantineSelection,
): Promise<QuarantineSelection> {
  if ('ids' in selection) return selection;
  const { jobId, field } = selection;
  const [newest] = await client.quarantine.list(id, { jobId, field, limit: 1 }).take(1);
  return newest === undefined ? selection : { ...selection, untilJobId: newest.jobId };
}

function sayConflicts(conflicts: readonly Conflict[]): void {
  for (const { id, reason } of conflicts) say(`Left out ${id}: ${CONFLICT_WORDS[reason]}`);
}

function nothingIn(workflow: string, { jobId, field }: ReturnType<typeof filterFrom>): string {
  return jobId === undefined && field === undefined
    ? `The quarantine of ${workflow} is empty`
    : `No record in the quarantine of ${workflow} matches`;
}

function isOne(selection: QuarantineSelection): boolean {
  return 'ids' in selection && selection.ids.length === 1;
}

function reasonsOf({ reasons }: QuarantinedRecord): string {
  return reasons.map(({ message }) => message).join('; ');
}

/** @throws UsageError */
function selectionFrom(ids: readonly string[], options: Options): QuarantineSelection {
  const all = options.all === true;
  if (all === ids.length > 0) {
    throw new UsageError('Give either ids of records, or --all');
  }
  const { jobId, field } = filterFrom(options);
  if (!all && (jobId !== undefined || field !== undefined)) {
    throw new UsageError('--job and --field need --all');
  }
  return all ? { all: true, jobId, field } : { ids };
}

function wordsOf(selection: QuarantineSelection): string {
  if ('ids' in selection) return countWords(selection.ids.length, 'record');
  const { jobId, field } = selection;
  const by = [
    jobId === undefined ? [] : `set aside by ${jobId}`,
    field === undefined ? [] : `with \`${field}\``,
  ];
  return ['All records', ...by.flat()].join(' ');
}

function filterFrom({ job, field }: Options): { jobId: string | undefined; field: string | undefined } {
  return {
    jobId: job === undefined ? undefined : String(job),
    field: field === undefined ? undefined : String(field),
  };
}

function limitFrom({ limit = USUAL_LIMIT }: Options): number {
  return wholeNumber('--limit', limit, 1, 1_000);
}

function formatFrom({ format = 'ndjson' }: Options): (typeof FORMATS)[number] {
  return oneOf('--format', String(format), FORMATS);
}
