/** `flowhook workflows`: lists, shows, pauses and resumes workflows; its other commands are files beside this one. */

import type { Command } from 'commander';
import type { Flowhook } from 'flowhook-client';
import { Problem } from '../model/error.ts';
import type { Job } from '../model/job.ts';
import { nextRunAt } from '../model/schedule.ts';
import type { Workflow } from '../model/workflow.ts';
import type { Place } from '../records/read.ts';
import { shownWorkflow } from '../resources/workflow.ts';
import { bytesWords, countWords, durationWords } from '../std/amounts.ts';
import { toIso } from '../std/clock.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { addAdd } from './add-workflow.ts';
import { findTeams, findWorkflow } from './find.ts';
import { oneLine, resultWords, stateWords } from './job-words.ts';
import { addNew } from './new-workflow.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { addPreview } from './preview-workflow.ts';
import { orRemote } from './remote.ts';
import { listWorkflowsAt, WORKFLOW_COMMANDS_AT, WORKFLOW_HEADS } from './remote-workflows.ts';
import { say } from './say.ts';
import { nextRunWords, scheduleWords } from './schedule-words.ts';
import type { Options } from './settings.ts';
import { columns, table } from './table.ts';
import { addTest } from './try-workflow.ts';
import { addValidate } from './validate.ts';

export function addWorkflows(program: Command): void {
  const workflows = program
    .command('workflows')
    .description('workflows: list, show, pause and resume them; validate, test, propose and add their files');
  const list = workflows
    .command('list')
    .description('list workflows with their schedule and their last job')
    .option('--team <slug>', 'only workflows of this team');
  orRemote(addStoreOptions(list), listWorkflows, listWorkflowsAt);

  const one = (
    name: string,
    description: string,
    action: (place: Place, store: Store, options: Options) => Promise<void>,
    remote: (server: Flowhook, name: string, options: Options) => Promise<void>,
  ) =>
    orRemote(
      addStoreOptions(
        workflows
          .command(name)
          .description(description)
          .argument('<workflow>', 'its id')
          .option('--team <slug>', 'its team, if several have a workflow with this id'),
      ),
      (id: string, options: Options) =>
        withStore(options, { make: false }, async (store) =>
          action(await findWorkflow(store, id, options.team), store, options),
        ),
      remote,
    );
  one(
    'show',
    'show one workflow: source, schedule, limits, records, jobs',
    showWorkflow,
    WORKFLOW_COMMANDS_AT.show,
  );
  addValidate(workflows);
  addTest(workflows);
  addPreview(workflows);
  addNew(workflows);
  addAdd(workflows);
  one(
    'pause',
    'pause a workflow: no job is queued or started; running ones continue',
    pauseWorkflow,
    WORKFLOW_COMMANDS_AT.pause,
  );
  one(
    'resume',
    'end the pause; scheduled runs that were missed are not made up for',
    resumeWorkflow,
    WORKFLOW_COMMANDS_AT.resume,
  );
}

async function listWorkflows(options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store) => {
    const shown: object[] = [];
    const rows: string[][] = [];
    for (const { id: teamId, slug } of await findTeams(store, options.team)) {
      for await (const workflow of everyRow(store.workflows.list, { teamId })) {
        shown.push({ team: slug, ...(await shownWorkflow(store, workflow)) });
        const { definition, currentVersion } = workflow;
        const total = (await store.records.version({ teamId, workflowId: workflow.id }))?.total ?? 0;
        const [job] = await store.jobs.list({ teamId, workflowId: workflow.id, limit: 1 });
        rows.push([
          `${slug}/${workflow.id}`,
          definition.source.type,
          currentVersion === 0
            ? 'no records yet'
            : `version ${currentVersion}, ${countWords(total, 'record')}`,
          job === undefined ? 'never run' : jobWords(job, store.now()),
          timeWords(workflow, store.now()).join(', next '),
        ]);
      }
    }
    print(options, shown, table(rows, process.stdout.columns, WORKFLOW_HEADS));
    if (rows.length > 0 || options.json === true) return;
    say('There are no workflows yet: write one to <team>/<id>.yaml and say `flowhook apply`');
  });
}

async function showWorkflow(place: Place, store: Store, options: Options): Promise<void> {
  const workflow = await workflowAt(place, store);
  const shown = await shownWorkflow(store, workflow);
  const team = await store.teams.get({ teamId: place.teamId });
  const [job] = await store.jobs.list({ ...place, limit: 1 });
  const now = store.now();
  const { source, guards, limits, retries, ...definition } = workflow.definition;
  const [schedule, next] = timeWords(workflow, now);
  const drop = guards.maxDropPercent === null ? '' : `, a drop of at most ${guards.maxDropPercent} %`;
  const rows: (readonly [string, string | null | undefined])[] = [
    ['workflow', `${team?.slug ?? place.teamId}/${workflow.id}`],
    ['name', definition.name],
    ['source', sourceWords(source)],
    ['file', source.type === 'module' ? source.file : null],
    ['mode', definition.mode],
    ['key', definition.key.length === 0 ? null : definition.key.join(', ')],
    ['overlap', definition.overlap],
    ['priority', definition.priority === 0 ? null : String(definition.priority)],
    ['schedule', schedule],
    ['next run', next],
    ['guards', `at least ${countWords(guards.minRecords, 'record')}${drop}${filledWords(source)}`],
    [
      'limits',
      `${durationWords(limits.timeoutMs)}, ${bytesWords(limits.memoryBytes)} of memory, ` +
        `${countWords(limits.records, 'record')}, ${bytesWords(limits.outputBytes)} of output`,
    ],
    ['retries', `${retries.max}, the first after up to ${durationWords(retries.backoffMs)}`],
    ['records', `version ${shown.version}: ${countWords(shown.records, 'record')}`],
    ['last job', job === undefined ? 'never run' : `${job.id} ${jobWords(job, now)}`],
  ];
  print(
    options,
    { team: team?.slug ?? null, ...shown, definition: workflow.definition },
    columns(rows.flatMap(([name, text]) => (text === null || text === undefined ? [] : [[name, text]]))),
  );
}

async function pauseWorkflow({ teamId, workflowId }: Place, store: Store, options: Options): Promise<void> {
  const workflow = await store.workflows.pause({ teamId, id: workflowId });
  if (workflow === undefined) throw new Problem('workflow_not_found');
  print(options, await shownWorkflow(store, workflow), [`paused ${workflowId}`]);
}

async function resumeWorkflow(place: Place, store: Store, options: Options): Promise<void> {
  const { id, teamId, definition } = await workflowAt(place, store);
  const next = definition.schedule === null ? null : nextRunAt(definition.schedule, store.now());
  const workflow = await store.workflows.resume({ teamId, id, nextRunAt: next });
  if (workflow === undefined) throw new Problem('workflow_not_found');
  print(options, await shownWorkflow(store, workflow), [
    [`resumed ${id}`, ...timeWords(workflow, store.now())].join(', '),
  ]);
}

async function workflowAt({ teamId, workflowId }: Place, store: Store): Promise<Workflow> {
  const workflow = await store.workflows.get({ teamId, id: workflowId });
  if (workflow === undefined) throw new Problem('workflow_not_found');
  return workflow;
}

/** The schedule in words, and the next run or that it is paused. */
function timeWords({ definition, nextRunAt: next, pausedAt }: Workflow, nowMs: number): string[] {
  const { schedule } = definition;
  const paused = pausedAt === null ? [] : [`paused since ${toIso(pausedAt)}`];
  if (schedule === null) return paused.length === 0 ? [] : ['no schedule', ...paused];
  return [scheduleWords(schedule), ...(pausedAt === null ? [nextRunWords(schedule, next, nowMs)] : paused)];
}

/** `finished 3 min ago`, `failed 2 h ago: timeout: …`, `running  120 records`. */
function jobWords(job: Job, nowMs: number): string {
  const state = stateWords(job);
  if (job.finishedAt === null) return [state, oneLine(resultWords(job, nowMs), 60)].join(' ').trim();
  const ago = `${state} ${durationWords(nowMs - job.finishedAt)} ago`;
  return job.state === 'failed' ? `${ago}: ${oneLine(resultWords(job, nowMs), 60)}` : ago;
}

/** `guards.required` and `guards.minFilledPercent`. */
function filledWords(source: Workflow['definition']['source']): string {
  if (source.type !== 'http' || source.filled === null) return '';
  const { fields, minPercent } = source.filled;
  const share = minPercent === 100 ? 'all records' : `at least ${minPercent} % of the records`;
  return fields === null ? `, every field in ${share}` : `, ${fields.join(', ')} in ${share}`;
}

function sourceWords(source: Workflow['definition']['source']): string {
  if (source.type === 'command') return `command ${source.command.join(' ')}`;
  return source.type === 'http' ? `http ${source.urls.join(' ')}` : source.type;
}
