/** `flowhook run` and `flowhook jobs`: queues, lists, shows, follows, cancels and reruns jobs. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Flowhook, FlowhookError, Job } from '../../../client/src/flowhook-client.ts';
import { JOB_ORIGINS, JOB_STATES } from '../../model/job.ts';
import { countWords, parseDuration } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import type { Command } from '../command.ts';
import { ConflictError, pausedError, UsageError } from '../exit.ts';
import { followJob, logTail, report } from '../follow-job.ts';
import { cellsOf, JOB_HEADS, jobLines, logText, oneLine, resultWords, stateWords } from '../job-words.ts';
import { addSettings, type Options, oneOf, someOf, wholeNumber } from '../options.ts';
import { onJob, onTarget, onWorkflow, type Target, type TargetTeam } from '../target.ts';
import { print, say, table, toOutput, untilInterrupted } from '../terminal.ts';

/** The error message of a job that this process ran and then canceled. */
const CANCELED_BY_COMMAND =
  'Canceled by the command that ran the job: it was interrupted, or its --timeout expired';
const DEFAULT_JOBS = 20;
const MAX_JOBS = 1_000;
/** `jobs watch` reads this many of the newest jobs of each team. */
const WATCHED = 200;
/** The longest delay of a timer in Node.js, in milliseconds. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export function addRun(program: Command): void {
  const command = program
    .command('run')
    .description(
      'run a workflow on the server that uses this database, or in this process if no server is running',
    )
    .withExamples('run people --wait', 'run acme/people --wait --logs')
    .argument('<workflow>', 'id of the workflow')
    .option('--team <slug>', 'team of the workflow, if several teams have a workflow with this id')
    .option('--wait', 'wait until the job has ended (always on when the job runs in this process)')
    .option('--timeout <duration>', 'maximum time to wait, such as 30s or 15m (implies --wait)')
    .option('--logs', 'print the log of the job to standard error (implies --wait)');
  onTarget(command, run, {
    own: () => true,
    check: (_workflow: string, options) => void timeoutFrom(options),
  });
  addSettings(command, ['workflows']).addHelpText(
    'after',
    '\nExit codes: 0 finished, 1 failed or canceled, 5 another job is queued or running, 7 the time limit of the job ' +
      'or --timeout expired, 130 interrupted.\n' +
      'After Ctrl-C or --timeout, a job on a server continues. A job in this process is canceled.',
  );
}

export function addJobs(program: Command): void {
  const jobs = program.command('jobs').description('list, show, follow, cancel and rerun jobs');
  const list = jobs
    .command('list')
    .description('list jobs, newest first')
    .withExamples('jobs list', 'jobs list --workflow people --state failed --limit 5')
    .option('--workflow <id>', 'only jobs of this workflow')
    .option('--team <slug>', 'only jobs of this team')
    .option('--state <states>', `only jobs in these states: comma-separated, of ${JOB_STATES.join(', ')}`)
    .withValues('--state', JOB_STATES)
    .option('--origin <origin>', `only jobs with this origin: ${JOB_ORIGINS.join(', ')}`)
    .withValues('--origin', JOB_ORIGINS)
    .option('--limit <number>', `maximum number of jobs, up to ${MAX_JOBS} (default: ${DEFAULT_JOBS})`);
  onTarget(list, listJobs, { check: (options) => void filterFrom(options) });

  const one = (
    name: string,
    description: string,
    action: (team: TargetTeam, id: string, options: Options) => Promise<void>,
  ) =>
    onTarget(
      jobs
        .command(name)
        .description(description)
        .withExamples(`jobs ${name} JOB`)
        .argument('<job>', 'id of the job'),
      (target, id: string, options: Options) =>
        onJob(target, id, (team, jobId) => action(team, jobId, options)),
    );
  one(
    'show',
    'show a job: its state, progress and result, or the reason why it failed',
    async (team, id, options) => {
      const job = await team.client.jobs.get(id);
      const slug = await team.slug();
      print(options, { team: slug, ...job }, jobLines(job, slug, Date.now()));
    },
  );

  const logs = jobs
    .command('logs')
    .description('print the log of a job (with --json: one JSON object per line)')
    .withExamples('jobs logs JOB', 'jobs logs JOB --follow')
    .argument('<job>', 'id of the job')
    .option('--attempt <number>', 'number of the attempt (default: the last)')
    .option('--follow', 'keep printing until the job has ended, including further attempts');
  onTarget(logs, printLog, { check: (_id: string, options) => void attemptFrom(options) });

  const watch = jobs
    .command('watch')
    .description('follow a job until it ends; without a job, print every change of every job until Ctrl-C')
    .withExamples('jobs watch', 'jobs watch JOB')
    .argument('[job]', 'id of the job')
    .option('--team <slug>', 'only jobs of this team');
  onTarget(watch, async (target, id: string | undefined, options: Options) => {
    const interrupted = untilInterrupted({ isEnd: id === undefined });
    const { signal } = interrupted;
    try {
      if (id === undefined) return await watchAll(target, options, signal);
      const { lookMs } = target;
      report(await onJob(target, id, ({ client }) => followJob(id, { client, lookMs, signal })), options);
    } finally {
      interrupted.clear();
    }
  });

  one('cancel', 'cancel a job; none of its records are published', async ({ client }, id, options) => {
    const { job } = await client.jobs.cancel(id);
    const isEnded = job.state === 'canceled';
    print(options, job, [`${isEnded ? 'canceled' : 'canceling'} ${id}`]);
    if (!isEnded) say(`The run is being stopped. To wait for its end, run \`flowhook jobs watch ${id}\``);
  });
  one('rerun', 'queue a new job of the same workflow as an earlier job', async ({ client }, id, options) => {
    const { job } = await client.jobs
      .rerun(id)
      .catch(async (error) => explain(client, error, await client.jobs.get(id)));
    printQueued(job, options);
  });
  one('run-now', 'start the next attempt of a retrying job now', async ({ client }, id, options) => {
    print(options, (await client.jobs.runNow(id)).job, [`due now ${id}`]);
  });
}

async function listJobs(target: Target, options: Options): Promise<void> {
  const { limit, ...filter } = filterFrom(options);
  const listOf = async ({ client, slug }: TargetTeam, workflowId?: string) => {
    const jobs = await client.jobs.list({ ...filter, workflowId, limit }).take(limit);
    const team = jobs.length === 0 ? '' : await slug();
    return jobs.map((job) => ({ team, job }));
  };
  const found =
    options.workflow === undefined
      ? (await Promise.all(target.teams.map((team) => listOf(team)))).flat()
      : await onWorkflow(target, String(options.workflow), listOf);
  // Ids are ordered by time.
  const newest = found.toSorted((a, b) => (a.job.id < b.job.id ? 1 : -1)).slice(0, limit);
  print(
    options,
    newest.map(({ team, job }) => ({ team, ...job })),
    table(
      newest.map(({ team, job }) => cellsOf(job, team, Date.now())),
      process.stdout.columns,
      JOB_HEADS,
    ),
  );
  if (found.length === 0 && options.json !== true)
    say('No jobs found. Queue one with `flowhook run WORKFLOW`');
}

/** The filter of `list`. @throws UsageError */
function filterFrom({ state, origin, limit }: Options) {
  return {
    limit: wholeNumber('--limit', limit ?? DEFAULT_JOBS, 1, MAX_JOBS),
    state: someOf('--state', state, JOB_STATES),
    origin: origin === undefined ? undefined : oneOf('--origin', String(origin), JOB_ORIGINS),
  };
}

async function printLog(target: Target, id: string, options: Options): Promise<void> {
  const attempt = attemptFrom(options);
  const interrupted = untilInterrupted();
  try {
    const [client, job] = await onJob(target, id, async (team) => [
      team.client,
      await team.client.jobs.get(id),
    ]);
    const isFollowed = options.follow === true;
    if (attempt !== undefined && attempt > job.attempt && !isFollowed) {
      say(`Job ${job.id} has had ${countWords(job.attempt, 'attempt')}, so there is no attempt ${attempt}`);
    }
    const tail = logTail(client, job, attempt);
    async function* lines() {
      if (!isFollowed) {
        return yield* tail({ ...job, attempt: Math.min(attempt ?? job.attempt, job.attempt) });
      }
      for (let now = job; ; now = await client.jobs.get(id)) {
        yield* tail(now);
        if (now.finishedAt !== null || interrupted.signal.aborted) return;
        await pause(target.lookMs, undefined, { signal: interrupted.signal }).catch(() => {});
      }
    }
    async function* written() {
      let current: number | undefined;
      for await (const line of lines()) {
        if (current !== undefined && current !== line.attempt) say(`-- attempt ${line.attempt}`);
        current = line.attempt;
        yield Buffer.from(`${options.json === true ? JSON.stringify(line) : logText(line)}\n`);
      }
    }
    await toOutput(written());
  } finally {
    interrupted.clear();
  }
}

/** `--attempt`; undefined if missing. @throws UsageError */
function attemptFrom({ attempt }: Options): number | undefined {
  return attempt === undefined ? undefined : wholeNumber('--attempt', attempt, 1, Number.MAX_SAFE_INTEGER);
}

async function watchAll({ teams, lookMs }: Target, options: Options, signal: AbortSignal): Promise<void> {
  let known: Map<string, string> | undefined;
  while (!signal.aborted) {
    const seen = new Map<string, string>();
    for (const { client, slug } of teams) {
      const jobs = await client.jobs.list({ limit: WATCHED }).take(WATCHED);
      for (const job of jobs.reverse()) {
        const state = stateWords(job);
        seen.set(job.id, state);
        // The first read prints only unfinished jobs. Each later read prints the jobs whose state has changed.
        if (known === undefined ? job.finishedAt !== null : known.get(job.id) === state) continue;
        const now = Date.now();
        const team = await slug();
        const result = oneLine(resultWords(job, now), 120);
        const line = [toIso(now), job.id, `${team}/${job.workflowId}`, state, result];
        print(options, { team, ...job }, [line.join('  ').trimEnd()]);
      }
    }
    known = seen;
    await pause(lookMs, undefined, { signal }).catch(() => {});
  }
}

async function run(target: Target, workflow: string, options: Options): Promise<void> {
  const interrupted = untilInterrupted({ withinMs: timeoutFrom(options) });
  const { signal } = interrupted;
  const { local, lookMs } = target;
  try {
    await onWorkflow(target, workflow, async ({ client, id: teamId = '' }, workflowId) => {
      const queue = async () =>
        (
          await client.workflows
            .queue(workflowId)
            .catch((error) => explain(client, error, { workflowId, isOwned: local?.owned === true }))
        ).jobId;
      const following = { client, lookMs, signal, logs: options.logs === true };
      if (local?.owned) {
        // The engine is loaded only if needed, so that the command starts fast.
        const { openEngine } = await import('../engine.ts');
        const engine = await openEngine(local.config, local.store);
        try {
          // Recovers a job that a killed server left running, because this job would otherwise block the workflow.
          await engine.reap();
          const id = await queue();
          say('No server is running on this database: the job runs in this process');
          await engine.start();
          const seen = await followJob(id, following);
          if (seen.finishedAt !== null) return report(seen, options);
          say('Canceling the job. Press Ctrl-C again to end this process immediately');
          await local.store.jobs.cancel({ teamId, id, by: CANCELED_BY_COMMAND });
          report(await followJob(id, { ...following, signal: new AbortController().signal }), options);
        } finally {
          await engine.stop();
        }
        return;
      }
      const id = await queue();
      if (isWaitedFor(options)) return report(await followJob(id, following), options);
      printQueued(await client.jobs.get(id), options);
    });
  } finally {
    interrupted.clear();
  }
}

function printQueued(job: Job, options: Options): void {
  print(options, job, [job.id]);
  say(`The job is queued. To follow it, run \`flowhook jobs watch ${job.id}\``);
}

/**
 * Adds the next step to the error, and the conflicting job if there is one.
 *
 * @param isOwned whether this process owns the database: the conflicting job then waits for a server to start
 */
async function explain(
  client: Flowhook,
  error: FlowhookError,
  { workflowId, isOwned = false }: { workflowId: string; isOwned?: boolean },
): Promise<never> {
  const { jobId } = error;
  if (error.code === 'workflow_paused') throw pausedError(workflowId, error);
  if (jobId == null) throw error;
  const state = await client.jobs.get(jobId).then(
    (job) => ` (${stateWords(job)})`,
    // A key may have the scope for queueing jobs but lack the scope for reading them.
    () => '',
  );
  const next = isOwned ? 'Run it with `flowhook serve`' : `Follow it with \`flowhook jobs watch ${jobId}\``;
  throw new ConflictError(
    `${error.message}: ${jobId}${state}. ${next}, or cancel it with \`flowhook jobs cancel ${jobId}\``,
    { cause: error },
  );
}

/** Whether `run` waits for the end of the job. */
function isWaitedFor({ wait, timeout, logs }: Options): boolean {
  return wait === true || timeout !== undefined || logs === true;
}

/** Parses `--timeout` into milliseconds; undefined if the flag is missing. @throws UsageError */
function timeoutFrom({ timeout }: Options): number | undefined {
  if (timeout === undefined) return undefined;
  const ms = parseDuration(timeout);
  if (ms !== undefined && ms > 0 && ms <= MAX_TIMEOUT_MS) return ms;
  throw new UsageError(
    `--timeout must be a duration such as 30s, 15m or 2h, up to 24 days, found "${timeout}"`,
  );
}
