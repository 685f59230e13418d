/**
 * `flowhook workflows`: lists, shows, pauses and resumes workflows. Other modules in this folder define the subcommands
 * on files.
 */
import { Forbidden, type Job, type Workflow } from '../../../client/src/flowhook-client.ts';
import { defaultMinRecords } from '../../model/quality/judge.ts';
import type { Definition, Mode, Schedule } from '../../model/workflow.ts';
import { bytesWords, countWords, durationWords, listed } from '../../std/amounts.ts';
import type { Command } from '../command.ts';
import { oneLine, resultWords, stateWords } from '../job-words.ts';
import { addStoreOptions } from '../open.ts';
import { addSettings, type Options, repeated } from '../options.ts';
import { onTarget, onWorkflow, type Target, type TargetTeam } from '../target.ts';
import { fields, type Head, print, say, table } from '../terminal.ts';
import { agoWords, dateWords, elapsedWords } from '../times.ts';
import { addProfile } from './profile.ts';

export function addWorkflows(program: Command): void {
  const workflows = program
    .command('workflows')
    .description('list, show, pause and resume workflows; validate, test and propose workflow files');
  const list = workflows
    .command('list')
    .description('list workflows with their schedules and last jobs')
    .withExamples('workflows list', 'workflows list --team acme --json')
    .option('--team <slug>', 'only workflows of this team');
  onTarget(list, listWorkflows);

  const one = (
    name: string,
    description: string,
    action: (team: TargetTeam, id: string, options: Options) => Promise<void>,
  ) =>
    onTarget(
      workflows
        .command(name)
        .description(description)
        .withExamples(`workflows ${name} people`)
        .argument('<workflow>', 'id of the workflow')
        .option('--team <slug>', 'team of the workflow, if several teams have a workflow with this id'),
      (target, workflow: string, options: Options) =>
        onWorkflow(target, workflow, (team, id) => action(team, id, options)),
    );
  one('show', 'show a workflow: source, schedule, limits, records and last job', showWorkflow);
  addProfile(workflows);
  addFileCommands(workflows);
  one(
    'pause',
    'pause a workflow: no job is queued or started, but running jobs continue',
    async ({ client }, id, options) => print(options, await client.workflows.pause(id), [`paused ${id}`]),
  );
  one(
    'resume',
    'end the pause of a workflow; missed scheduled runs are skipped',
    async ({ client }, id, options) => {
      const workflow = await client.workflows.resume(id);
      print(options, workflow, [[`resumed ${id}`, ...scheduleCells(workflow)].join(', ')]);
    },
  );
}

/**
 * Adds the subcommands on workflow files. Their actions load the code for YAML, sources and runs, because loading it
 * earlier would slow the other commands.
 */
function addFileCommands(workflows: Command): void {
  const validate = workflows
    .command('validate')
    .description('check workflow files without a database, and list every mistake with its file and line')
    .withExamples('workflows validate', 'workflows validate workflows/acme/people.yaml')
    .argument('[files...]', 'files <team>/<id>.yaml or .mts (default: all files in the workflows directory)')
    .option('--json', 'print JSON');
  addSettings(validate, ['workflows']).action(async (files: string[], options: Options) =>
    (await import('./workflow-files.ts')).validate(files, options),
  );

  const test = workflows
    .command('test')
    .description(
      'run the source of a workflow file without publishing, and show the first records, the changes and the timing',
    )
    .withExamples('workflows test workflows/acme/people.yaml')
    .argument('<file>', 'file <team>/<id>.yaml or .mts, applied or not')
    .action(async (file: string, options: Options) =>
      (await import('./try-workflow.ts')).testFile(file, options),
    );
  addStoreOptions(test).addHelpText(
    'after',
    '\nIf a database contains this workflow, the records are compared with the published ones.\n' +
      'Modules and taps start with an empty state. The log is printed to standard error.',
  );

  const preview = workflows
    .command('preview')
    .description('test the paths of an http source on its first page, or on a saved response')
    .withExamples(
      'workflows preview workflows/acme/people.yaml',
      'workflows preview workflows/acme/people.yaml --from saved.html',
    )
    .argument('<file>', 'file <team>/<id>.yaml')
    .option('--from <file>', 'saved response to read instead of sending requests')
    .option('--pages <number>', 'number of pages to read of each URL', '1')
    .option('--json', 'print JSON');
  addSettings(preview, ['allowNetworks']).action(async (file: string, options: Options) =>
    (await import('./preview-workflow.ts')).preview(file, options),
  );

  const propose = workflows
    .command('new')
    .description('propose a workflow file for a web page or an API, and show its first records')
    .withExamples(
      'workflows new https://example.com/people',
      'workflows new https://example.com/api/people --out workflows/acme/people.yaml',
    )
    .argument('<url>', 'URL of a list: a web page, a JSON response, a CSV or NDJSON file')
    .option('--header <name: value>', 'header to send with requests (repeatable)', repeated)
    .option('--out <file>', 'write the proposal to this new file (default: print it)')
    .option('--json', 'print JSON');
  addSettings(propose, ['allowNetworks', 'workflows']).action(async (url: string, options: Options) =>
    (await import('./preview-workflow.ts')).propose(url, options),
  );
}

const HEADS: readonly Head[] = [
  { name: 'workflow' },
  { name: 'source', drop: 1 },
  { name: 'records', drop: 2 },
  { name: 'last job' },
  { name: 'schedule', drop: 3 },
];

async function listWorkflows({ teams }: Target, options: Options): Promise<void> {
  const lists = teams.map(async ({ client, slug }) => {
    const workflows = await Array.fromAsync(client.workflows.list({ limit: 1_000 }));
    const team = workflows.length === 0 ? '' : await slug();
    return workflows.map((workflow) => ({ team, ...workflow }));
  });
  const found = (await Promise.all(lists)).flat();
  const rows = found.map(({ team, ...workflow }) => {
    const job = workflow.currentJob ?? workflow.lastJob;
    const { version, records } = workflow;
    return [
      `${team}/${workflow.id}`,
      workflow.source.type,
      [
        version === 0 ? 'no records yet' : `version ${version}, ${countWords(records, 'record')}`,
        ...(workflow.staleSince === null ? [] : ['stale']),
      ].join(', '),
      job === null ? 'never run' : jobWords(job),
      scheduleCells(workflow).join(workflow.pausedAt === null ? ', next ' : ', '),
    ];
  });
  print(options, found, table(rows, process.stdout.columns, HEADS));
  if (found.length > 0 || options.json === true) return;
  say('There are no workflows yet. Write a file <team>/<id>.yaml and run `flowhook apply`');
}

async function showWorkflow({ client, slug }: TargetTeam, id: string, options: Options): Promise<void> {
  const workflow = await client.workflows.get(id);
  const team = await slug();
  const definition = await client.workflows.definition(id).then(
    (found) => found.definition as unknown as Definition,
    (error) => {
      // Only a key with the scope `admin` may read definitions.
      if (error instanceof Forbidden) return undefined;
      throw error;
    },
  );
  const job = workflow.currentJob ?? workflow.lastJob;
  const [schedule, next] = scheduleCells(workflow);
  const rows: (readonly [string, string | null | undefined])[] = [
    ['workflow', `${team}/${id}`],
    ['name', workflow.name],
    ...(definition === undefined
      ? ([
          ['source', workflow.source.type],
          ['mode', workflow.mode],
        ] as const)
      : definitionRows(definition)),
    ['schedule', schedule],
    ['next run', workflow.pausedAt === null ? next : null],
    ['paused', dateWords(workflow.pausedAt, Date.now())],
    ...(definition === undefined ? [] : limitRows(definition)),
    ['fresh', freshWords(workflow)],
    ['records', `version ${workflow.version}: ${countWords(workflow.records, 'record')}`],
    [
      'keeps',
      `${countWords(workflow.keep.versions, 'version')}, for ${countWords(workflow.keep.days, 'day')}`,
    ],
    ['history', historyWords(workflow)],
    ['last job', job === null ? 'never run' : `${job.id} ${jobWords(job)}`],
  ];
  print(options, { team, ...workflow, ...(definition === undefined ? {} : { definition }) }, fields(rows));
}

function definitionRows({ source, mode, key, overlap, priority }: Definition) {
  return [
    ['source', sourceWords(source)],
    ['file', source.type === 'module' ? source.file : null],
    ['mode', mode],
    ['key', key.length === 0 ? null : key.join(', ')],
    ['overlap', overlap],
    ['priority', priority === 0 ? null : String(priority)],
  ] as const;
}

function limitRows({ mode, expect, limits, retries }: Definition) {
  return [
    ['expects', expectWords(expect, mode)],
    [
      'limits',
      `${durationWords(limits.timeoutMs)}, ${bytesWords(limits.memoryBytes)} of memory, ` +
        `${countWords(limits.records, 'record')}, ${bytesWords(limits.outputBytes)} of output`,
    ],
    ['retries', `${retries.max}, the first within ${durationWords(retries.backoffMs)}`],
  ] as const;
}

/** The versions that can be read, and what the older ones cost: `12 versions since …, 3 MB for older values`. */
function historyWords({ history: { versions, oldest, bytes } }: Workflow): string | null {
  if (oldest === null) return null;
  const since = dateWords(oldest.publishedAt, Date.now());
  return `${countWords(versions, 'version')} since ${since}, ${bytesWords(bytes)} for what they replaced`;
}

/** Says when the workflow becomes stale, or since when it is: `until 24 Nov 2026, 06:00 CET, in 3 h`. */
function freshWords({ freshUntil, staleSince }: Workflow): string | null {
  const now = Date.now();
  if (staleSince !== null)
    return `stale for ${elapsedWords(freshUntil ?? staleSince, now)}: no run has succeeded`;
  return freshUntil === null ? null : `until ${dateWords(freshUntil, now)}`;
}

/** Returns cells with the schedule, and with the next run or the pause: `every hour`, `paused for 2 h`. */
function scheduleCells({ nextRunAt, pausedAt, ...workflow }: Workflow): string[] {
  const schedule = workflow.schedule as Schedule | null;
  const paused = pausedAt === null ? [] : [`paused for ${elapsedWords(pausedAt, Date.now())}`];
  if (schedule === null) return paused.length === 0 ? [] : ['no schedule', ...paused];
  const next = nextRunAt === null ? null : Date.parse(nextRunAt);
  return [
    scheduleWords(schedule),
    ...(pausedAt === null ? [nextRunWords(schedule, next, Date.now())] : paused),
  ];
}

/** Describes the state of a job: `finished 3 min ago`, `failed 2 h ago: timeout: …` or `running  120 records`. */
function jobWords(job: Job): string {
  const nowMs = Date.now();
  const state = stateWords(job);
  if (job.finishedAt === null) return [state, oneLine(resultWords(job, nowMs), 60)].join(' ').trim();
  const ago = `${state} ${agoWords(job.finishedAt, nowMs)}`;
  return job.state === 'failed' ? `${ago}: ${oneLine(resultWords(job, nowMs), 60)}` : ago;
}

/** `at least 1 record, a drop of at most 50%; price: number, min 0, filled 98%; otherwise warn`. */
function expectWords({ records, fields, freshMs, otherwise }: Definition['expect'], mode: Mode): string {
  const bound = (words: string, limit: number | null, unit = '%') =>
    limit === null ? [] : [`${words} ${limit}${unit}`];
  const ofRecords = [
    `at least ${countWords(records.min ?? defaultMinRecords(mode), 'record')}`,
    ...bound('at most', records.max, ''),
    ...bound('a drop of at most', records.drop),
    ...bound('a rise of at most', records.rise),
    ...bound('duplicates at most', records.duplicates),
  ];
  const ofFields = Object.entries(fields).map(
    ([name, { type, min, max, filled, unique, oneOf, matches }]) => {
      const parts = [
        ...(type === null ? [] : [type]),
        ...(min === null ? [] : [`min ${min}`]),
        ...(max === null ? [] : [`max ${max}`]),
        ...bound('filled', filled),
        ...(unique ? ['unique'] : []),
        ...(oneOf === null ? [] : [`one of ${listed(oneOf.map(String))}`]),
        ...(matches === null ? [] : [`matches ${matches}`]),
      ];
      return `${name}: ${parts.join(', ')}`;
    },
  );
  const fresh = freshMs === null ? [] : [`a run every ${durationWords(freshMs)}`];
  return [ofRecords.join(', '), ...ofFields, ...fresh, `otherwise ${otherwise}`].join('; ');
}

function sourceWords(source: Definition['source']): string {
  if (source.type === 'command') return `command ${source.command.join(' ')}`;
  return source.type === 'http' ? `http ${source.urls.join(' ')}` : source.type;
}

/** Describes a schedule: `every 6 hours` or `cron 0 6 * * 1-5 (Europe/Berlin)`. */
export function scheduleWords(schedule: Schedule): string {
  if (!('everyMs' in schedule)) return `cron ${schedule.cron} (${schedule.timezone})`;
  const units = { day: 86_400_000, hour: 3_600_000, minute: 60_000, second: 1_000 };
  const { everyMs } = schedule;
  const [noun, size] = Object.entries(units).find(([, ms]) => everyMs % ms === 0) ?? ['millisecond', 1];
  return everyMs === size ? `every ${noun}` : `every ${everyMs / size} ${noun}s`;
}

/**
 * Says when a workflow runs next: `Mon 23 Nov 2026, 06:00 Europe/Berlin, in 2 days 8 h`. The time zone is that of the
 * schedule, or else that of this machine.
 */
export function nextRunWords(schedule: Schedule, nextRunAt: number | null, nowMs: number): string {
  if (nextRunAt === null) return 'never again';
  const { timeZone } =
    'everyMs' in schedule ? new Intl.DateTimeFormat().resolvedOptions() : { timeZone: schedule.timezone };
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(nextRunAt % 60_000 === 0 ? {} : { second: '2-digit' }),
  }).formatToParts(nextRunAt);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((one) => one.type === type)?.value;
  const time = [part('hour'), part('minute'), part('second')].filter(Boolean).join(':');
  const when = `${part('weekday')} ${part('day')} ${part('month')} ${part('year')}, ${time} ${timeZone}`;
  const left = nextRunAt - nowMs;
  return `${when}, ${left <= 0 ? 'due now' : `in ${durationWords(left)}`}`;
}
