/** `flowhook jobs`: lists, shows, cancels and reruns jobs. */
import type { Command } from 'commander';
import type { Flowhook } from 'flowhook-client';
import { Problem } from '../model/error.ts';
import { JOB_ORIGINS, type Job } from '../model/job.ts';
import type { Team } from '../model/team.ts';
import { endedSentence, notWaitingSentence, shownJob } from '../resources/job.ts';
import type { Store } from '../store/store.ts';
import { findJob, findTeams, findWorkflow } from './find.ts';
import { DEFAULT_JOBS, jobFilterFrom } from './job-flags.ts';
import { addJobLogs } from './job-logs.ts';
import { cellsOf, JOB_HEADS, jobLines } from './job-words.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote } from './remote.ts';
import { cancelJobAt, listJobsAt, rerunJobAt, runJobNowAt, showJobAt } from './remote-jobs.ts';
import { submit } from './run.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { table } from './table.ts';
import { addWatch } from './watch.ts';

const BY = 'Canceled at the command line';

export function addJobs(program: Command): void {
  const jobs = program.command('jobs').description('jobs: list, show, follow, cancel and rerun them');
  const list = jobs
    .command('list')
    .description('list jobs, newest first')
    .option('--workflow <id>', 'only jobs of this workflow')
    .option('--team <slug>', 'only jobs of this team')
    .option('--state <states>', 'only jobs in these states, comma-separated')
    .option('--origin <origin>', `only jobs of this origin: ${JOB_ORIGINS.join(', ')}`)
    .option('--limit <number>', `how many at most (default: ${DEFAULT_JOBS})`);
  orRemote(addStoreOptions(list), listJobs, listJobsAt);

  const one = (
    name: string,
    description: string,
    action: (job: Job, store: Store, options: Options) => Promise<void>,
    remote: (server: Flowhook, id: string, options: Options) => Promise<void>,
  ) =>
    orRemote(
      addStoreOptions(jobs.command(name).description(description).argument('<job>', 'its id')),
      (id: string, options: Options) =>
        withStore(options, { make: false }, async (store) =>
          action(await findJob(store, id), store, options),
        ),
      remote,
    );
  one('show', 'show one job: where it stands, and why it failed if it did', showJob, showJobAt);
  addJobLogs(jobs);
  addWatch(jobs);
  one('cancel', 'cancel a job; none of its records are published', cancelJob, cancelJobAt);
  one('rerun', 'queue a new job of the same workflow', rerunJob, rerunJobAt);
  one('run-now', 'start the next attempt of a retrying job now', runJobNow, runJobNowAt);
}

async function listJobs(options: Options): Promise<void> {
  const { limit, ...filter } = jobFilterFrom(options);
  await withStore(options, { make: false }, async (store) => {
    const place =
      options.workflow === undefined
        ? undefined
        : await findWorkflow(store, String(options.workflow), options.team);
    const teams = (await findTeams(store, options.team)).filter(
      ({ id }) => place === undefined || id === place.teamId,
    );
    const found: { job: Job; team: Team }[] = [];
    for (const team of teams) {
      const jobs = await store.jobs.list({
        teamId: team.id,
        ...(place === undefined ? {} : { workflowId: place.workflowId }),
        ...filter,
        limit,
      });
      found.push(...jobs.map((job) => ({ job, team })));
    }
    // Ids are ordered by time.
    const newest = found.toSorted((a, b) => (a.job.id < b.job.id ? 1 : -1)).slice(0, limit);
    print(
      options,
      newest.map(({ job, team }) => ({ team: team.slug, ...shownJob(job) })),
      table(
        newest.map(({ job, team }) => cellsOf(job, team.slug, store.now())),
        process.stdout.columns,
        JOB_HEADS,
      ),
    );
    if (found.length > 0 || options.json === true) return;
    say('No jobs found. `flowhook run WORKFLOW` queues one');
  });
}

async function showJob(job: Job, store: Store, options: Options): Promise<void> {
  const team = await store.teams.get({ teamId: job.teamId });
  const lines = jobLines(job, team?.slug ?? job.teamId, store.now());
  print(options, { team: team?.slug ?? null, ...shownJob(job) }, lines);
}

async function cancelJob({ teamId, id }: Job, store: Store, options: Options): Promise<void> {
  const canceled = await store.jobs.cancel({ teamId, id, by: BY });
  if (canceled === undefined) throw new Problem('job_not_found');
  const { outcome, job } = canceled;
  if (outcome === 'ended') throw new Problem('job_ended', { sentence: endedSentence(job) });
  print(options, shownJob(job), [`${outcome} ${job.id}`]);
  if (outcome === 'canceling') {
    say(`Its run is being stopped; \`flowhook jobs watch ${job.id}\` waits for it`);
  }
}

async function rerunJob({ teamId, workflowId }: Job, store: Store, options: Options): Promise<void> {
  const job = await submit(store, { teamId, workflowId });
  print(options, shownJob(job), [job.id]);
  say(`Queued; \`flowhook jobs watch ${job.id}\` follows it`);
}

async function runJobNow({ teamId, id }: Job, store: Store, options: Options): Promise<void> {
  const found = await store.jobs.runNow({ teamId, id });
  if (found === undefined) throw new Problem('job_not_found');
  if (found.outcome === 'not_waiting') {
    throw new Problem('job_not_waiting', { sentence: notWaitingSentence(found.job) });
  }
  print(options, shownJob(found.job), [`due now ${id}`]);
}
