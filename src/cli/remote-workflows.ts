/** `flowhook workflows` against a server. */
import type { Flowhook, Workflow } from 'flowhook-client';
import { countWords } from '../std/amounts.ts';
import { stateWords } from './job-words.ts';
import { print } from './output.ts';
import { withoutTeam } from './remote.ts';
import { storedJob } from './remote-jobs.ts';
import type { Options } from './settings.ts';
import { columns, type Head, table } from './table.ts';

export async function listWorkflowsAt(server: Flowhook, options: Options): Promise<void> {
  const { team } = await server.me();
  const workflows = await Array.fromAsync(server.workflows.list());
  print(
    options,
    workflows.map((workflow) => ({ team: team.slug, ...workflow })),
    table(
      workflows.map((workflow) => cellsOf(workflow, team.slug)),
      process.stdout.columns,
      WORKFLOW_HEADS,
    ),
  );
}

/** What is above the cells of a workflow. */
export const WORKFLOW_HEADS: readonly Head[] = [
  { name: 'workflow' },
  { name: 'source', drop: 1 },
  { name: 'records', drop: 2 },
  { name: 'last job' },
  { name: 'schedule', drop: 3 },
];

/** Commands for one workflow, by name. */
export const WORKFLOW_COMMANDS_AT = {
  async show(server: Flowhook, name: string, options: Options) {
    const { team } = await server.me();
    const workflow = await server.workflows.get(withoutTeam(name));
    const names = ['workflow', 'source', 'records', 'last job', 'next run'];
    const rows = cellsOf(workflow, team.slug).map((cell, at) => [names[at] ?? '', cell]);
    print(options, { team: team.slug, ...workflow }, columns(rows));
  },
  async pause(server: Flowhook, name: string, options: Options) {
    print(options, await server.workflows.pause(withoutTeam(name)), [`paused ${name}`]);
  },
  async resume(server: Flowhook, name: string, options: Options) {
    print(options, await server.workflows.resume(withoutTeam(name)), [`resumed ${name}`]);
  },
};

function cellsOf({ id, source, version, records, currentJob, lastJob, ...rest }: Workflow, team: string) {
  const job = currentJob ?? lastJob;
  return [
    `${team}/${id}`,
    source.type,
    version === 0 ? 'no records yet' : `version ${version}, ${countWords(records, 'record')}`,
    job === null ? 'never run' : `${job.id} ${stateWords(storedJob(job))}`,
    rest.paused ? `paused since ${rest.pausedAt}` : (rest.nextRunAt ?? 'no schedule'),
  ];
}
