/** `flowhook run` and `flowhook jobs`: queues, lists, shows, follows, cancels and reruns jobs. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Flowhook, FlowhookError, Job } from 'flowhook-client';
import { JOB_ORIGINS, JOB_STATES } from '../../model/job.ts';
import { parseDuration } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import { ConflictError, UsageError } from '../exit.ts';
import { followJob, logTail, report } from '../follow-job.ts';
import { cellsOf, JOB_HEADS, jobLines, logText, oneLine, resultWords, stateWords } from '../job-words.ts';
import { addSettings, type Options, oneOf, someOf, wholeNumber } from '../options.ts';
import { onJob, onTarget, onWorkflow, type Target, type TargetTeam } from '../target.ts';
import { print, say, table, toOutput, untilInterrupted } from '../terminal.ts';

/** Who canceled a job that runs in the process of the command. */
const BY_ENDING =
  'Canceled at the command line: the command that ran it was interrupted, or its --timeout was over';
const DEFAULT_JOBS = 20;
const MAX_JOBS = 1_000;
/** How many of the newest jobs of each team are watched. */
const WATCHED = 200;
/** Of a timer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export function addRun(program: Command): void {
  const command = program
    .command('run')
    .description(
      'run a workflow: on the server that uses this database, or in this process if none is running',
    )
    .argument('<workflow>', 'its id')
    .option('--team <slug>', 'its team, if several have a workflow with this id')
    .option('--wait', 'wait until the job has ended (implied when it runs in this process)')
    .option('--timeout <duration>', 'wait no longer than this, such as 30s or 15m (implies --wait)')
    .option('--logs', 'print its log to standard error while waiting');
  onTarget(command, run, {
    own: () => true,
    check: (_workflow: string, options) => void timeoutFrom(options),
  });
  addSettings(command, ['workflows']).addHelpText(
    'after',
    '\nExit codes: 0 finished, 1 failed or canceled, 5 another job is queued or running, 7 ended by its time limit ' +
      'or --timeout, 130 interrupted.\n' +
      'Ctrl-C or --timeout leave the job to the server; a job that runs in this process is canceled.',
  );
}

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
  onTarget(list, listJobs, { check: (options) => void filterFrom(options) });

  const one = (
    name: string,
    description: string,
    action: (team: TargetTeam, id: string, options: Options) => Promise<void>,
  ) =>
    onTarget(
      jobs.command(name).description(description).argument('<job>', 'its id'),
      (target, id: string, options: Options) =>
        onJob(target, id, (team, jobId) => action(team, jobId, options)),
    );
  one('show', 'show one job: where it stands, and why it failed if it did', async (team, id, options) => {
    const job = await team.client.jobs.get(id);
    const slug = await team.slug();
    print(options, { team: slug, ...job }, jobLines(job, slug, Date.now()));
  });

  const logs = jobs
    .command('logs')
    .description('print the log of a job (with --json: one JSON object per line)')
    .argument('<job>', 'its id')
    .option('--attempt <number>', 'which attempt (default: the last)')
    .option('--follow', 'continue until the job has ended, including further attempts');
  onTarget(logs, printLog, { check: (_id: string, options) => void attemptFrom(options) });

  const watch = jobs
    .command('watch')
    .description('follow a job to its end; without one, print every change of every job until Ctrl-C')
    .argument('[job]', 'its id')
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
    if (!isEnded) say(`Its run is being stopped; \`flowhook jobs watch ${id}\` waits for it`);
  });
  one('rerun', 'queue a new job of the same workflow', async ({ client }, id, options) => {
    const { job } = await client.jobs.rerun(id).catch((error) => explain(client, error));
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
  if (found.length === 0 && options.json !== true) say('No jobs found. `flowhook run WORKFLOW` queues one');
}

/** Which jobs `list` shows. @throws UsageError */
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
      say(`Job ${job.id} has had ${job.attempt} attempts: there is no attempt ${attempt}`);
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

/** `--attempt`; undefined when it is missing. @throws UsageError */
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
        // The first look prints only unfinished jobs: the others have not changed.
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
            .catch((error) => explain(client, error, { isOwned: local?.owned }))
        ).jobId;
      const following = { client, lookMs, signal, logs: options.logs === true };
      if (local?.owned) {
        // Loaded here: not needed when a server runs the job.
        const { openEngine } = await import('../engine.ts');
        const engine = await openEngine(local.config, local.store);
        try {
          // A job left running by a killed server would otherwise block the workflow forever.
          await engine.reap();
          const id = await queue();
          say('No server is running on this database: the job runs in this process');
          await engine.start();
          const seen = await followJob(id, following);
          if (seen.finishedAt !== null) return report(seen, options);
          say('Canceling the job; Ctrl-C ends this process at once');
          await local.store.jobs.cancel({ teamId, id, by: BY_ENDING });
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
  say(`Queued; \`flowhook jobs watch ${job.id}\` follows it`);
}

/**
 * Names the job in the way.
 *
 * @param isOwned whether no server is running: that job then waits for one
 */
async function explain(client: Flowhook, error: FlowhookError, { isOwned = false } = {}): Promise<never> {
  const { jobId } = error;
  if (jobId == null) throw error;
  const state = await client.jobs.get(jobId).then(
    (job) => ` (${stateWords(job)})`,
    // A key may queue without reading.
    () => '',
  );
  const next = isOwned ? 'serve` would run it' : `jobs watch ${jobId}\` follows it`;
  throw new ConflictError(
    `${error.message}: ${jobId}${state}. \`flowhook ${next}, \`flowhook jobs cancel ${jobId}\` ends it`,
    { cause: error },
  );
}

/** Whether `run` waits for the end of the job. */
function isWaitedFor({ wait, timeout, logs }: Options): boolean {
  return wait === true || timeout !== undefined || logs === true;
}

/** `--timeout` in milliseconds; undefined when it is missing. @throws UsageError */
function timeoutFrom({ timeout }: Options): number | undefined {
  if (timeout === undefined) return undefined;
  const ms = parseDuration(timeout);
  if (ms !== undefined && ms > 0 && ms <= MAX_TIMEOUT_MS) return ms;
  throw new UsageError(
    `--timeout must be a duration such as 30s, 15m or 2h, up to 24 days, found "${timeout}"`,
  );
}
