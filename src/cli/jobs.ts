/** `flowhook jobs`: lists jobs, shows one, cancels and repeats them; with or without a server. */
import type { Command } from 'commander';
import { endedSentence, notWaitingSentence, shownJob } from '../http/extensions/shown-job.ts';
import { Problem } from '../model/error.ts';
import { JOB_ORIGINS, type Job } from '../model/job.ts';
import type { Team } from '../model/team.ts';
import { toIso } from '../std/clock.ts';
import type { Store } from '../store/store.ts';
import { findJob, findTeams, findWorkflow, oneOf, statesFrom, wholeNumber } from './find.ts';
import { addJobLogs } from './job-logs.ts';
import { cellsOf, inWords, publishedWords, stateWords } from './job-words.ts';
import { addStoreOptions, print, withStore } from './open.ts';
import { submit } from './run.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { addWatch } from './watch.ts';
import { bytesWords, columns, countWords, durationWords } from './words.ts';

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;
const BY = 'Canceled at the command line';

export function addJobs(program: Command): void {
  const jobs = program.command('jobs').description('jobs: list, show, follow, cancel and repeat them');
  const list = jobs
    .command('list')
    .description('list jobs, newest first')
    .option('--workflow <id>', 'only of this workflow')
    .option('--team <slug>', 'only of this team')
    .option('--state <states>', 'only in these states, with commas between')
    .option('--origin <origin>', `only of this origin: ${JOB_ORIGINS.join(', ')}`)
    .option('--limit <number>', `at most so many (default: ${DEFAULT_LIMIT})`);
  addStoreOptions(list).action(listJobs);

  const one = (
    name: string,
    description: string,
    action: (job: Job, store: Store, options: Options) => Promise<void>,
  ) =>
    addStoreOptions(jobs.command(name).description(description).argument('<job>', 'its id')).action(
      (id: string, options: Options) =>
        withStore(options, { make: false }, async (store) =>
          action(await findJob(store, id), store, options),
        ),
    );
  one('show', 'show one job: where it stands, and why it failed if it did', showJob);
  addJobLogs(jobs);
  addWatch(jobs);
  one('cancel', 'cancel a job: nothing of it is published', cancelJob);
  one('rerun', 'queue a new job of the same workflow', rerunJob);
  one('run-now', 'bring a job forward that waits for its next attempt', runJobNow);
}

async function listJobs(options: Options): Promise<void> {
  const states = statesFrom(options.state);
  const origin =
    options.origin === undefined ? undefined : oneOf('--origin', String(options.origin), JOB_ORIGINS);
  const limit = wholeNumber('--limit', options.limit ?? DEFAULT_LIMIT, 1, MAX_LIMIT);
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
        ...(states === undefined ? {} : { states }),
        ...(origin === undefined ? {} : { origin }),
        limit,
      });
      found.push(...jobs.map((job) => ({ job, team })));
    }
    // Ids grow with time.
    const newest = found.toSorted((a, b) => (a.job.id < b.job.id ? 1 : -1)).slice(0, limit);
    print(
      options,
      newest.map(({ job, team }) => ({ team: team.slug, ...shownJob(job) })),
      columns(newest.map(({ job, team }) => cellsOf(job, team.slug, store.now()))),
    );
    if (found.length > 0 || options.json === true) return;
    say('There is no such job. `flowhook run WORKFLOW` makes one');
  });
}

async function showJob(job: Job, store: Store, options: Options): Promise<void> {
  const now = store.now();
  const team = await store.teams.get({ teamId: job.teamId });
  const rows: (readonly [string, string | null])[] = [
    ['job', job.id],
    ['workflow', `${team?.slug ?? job.teamId}/${job.workflowId}`],
    ['state', stateWords(job)],
    ['origin', job.origin],
    ['attempts', String(job.attempt)],
    ['priority', job.priority === 0 ? null : String(job.priority)],
    ['queued', toIso(job.createdAt)],
    ['started', job.startedAt === null ? null : toIso(job.startedAt)],
    ['next attempt', job.state === 'retrying' ? `${toIso(job.runAt)}, ${inWords(job.runAt, now)}` : null],
    ['cancel asked', job.cancelRequestedAt === null ? null : toIso(job.cancelRequestedAt)],
    ['ended', job.finishedAt === null ? null : toIso(job.finishedAt)],
    ['took', job.startedAt === null ? null : durationWords((job.finishedAt ?? now) - job.startedAt)],
    ['reason', job.reason],
    [job.state === 'canceled' ? 'canceled' : 'error', job.error],
    [
      'progress',
      job.progress === null
        ? null
        : `${countWords(job.progress.records, 'record')}, ${bytesWords(job.progress.bytes)}`,
    ],
    ['pages', job.progress === null || job.progress.pages === null ? null : String(job.progress.pages)],
    ['message', job.progress?.message ?? null],
    ['published', job.state === 'finished' ? publishedWords(job) : null],
  ];
  const said = rows.flatMap(([name, text]) =>
    text === null ? [] : [[name, text.replaceAll('\n', '\n              ')]],
  );
  print(options, { team: team?.slug ?? null, ...shownJob(job) }, columns(said));
}

async function cancelJob({ teamId, id }: Job, store: Store, options: Options): Promise<void> {
  const canceled = await store.jobs.cancel({ teamId, id, by: BY });
  if (canceled === undefined) throw new Problem('job_not_found');
  const { outcome, job } = canceled;
  if (outcome === 'ended') throw new Problem('job_ended', { sentence: endedSentence(job) });
  print(options, shownJob(job), [`${outcome} ${job.id}`]);
  if (outcome === 'canceling') {
    say(`Its run is being ended; \`flowhook jobs watch ${job.id}\` waits for it`);
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
