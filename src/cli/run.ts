/** `flowhook run`: queues a job; if no server is running, the job runs in this process. */
import type { Command } from 'commander';
import { submitJob } from '../jobs/submit.ts';
import { Problem } from '../model/error.ts';
import type { Job } from '../model/job.ts';
import type { Place } from '../records/read.ts';
import { shownJob, textOf } from '../resources/job.ts';
import type { Store } from '../store/store.ts';
import { findWorkflow } from './find.ts';
import { followJob } from './follow-job.ts';
import { stateWords } from './job-words.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote } from './remote.ts';
import { runAt } from './remote-jobs.ts';
import { isWaitedFor, report, timeoutFrom } from './report-job.ts';
import { say, screen, warn } from './say.ts';
import { addSettings, type Options } from './settings.ts';
import { untilInterrupted } from './until-interrupted.ts';

export function addRun(program: Command): void {
  const run = program
    .command('run')
    .description(
      'run a workflow: on the server that uses this database, or in this process if none is running',
    )
    .argument('<workflow>', 'its id')
    .option('--team <slug>', 'its team, if several have a workflow with this id')
    .option('--wait', 'wait until the job has ended (implied when it runs in this process)')
    .option('--timeout <duration>', 'wait no longer than this, such as 30s or 15m (implies --wait)')
    .option('--logs', 'print its log to standard error while waiting');
  addSettings(addStoreOptions(run), ['workflows']);
  run.addHelpText(
    'after',
    '\nExit codes: 0 finished, 1 failed or canceled, 5 another job is queued or running, 7 ended by its time limit ' +
      'or --timeout, 130 interrupted.\n' +
      'Ctrl-C or --timeout leave the job to the server; a job that runs in this process is canceled.',
  );
  const local = (name: string, options: Options) =>
    withStore(options, { make: false, own: true }, async (store, config, owned) => {
      const place = await findWorkflow(store, name, options.team);
      const interrupted = untilInterrupted({ withinMs: timeoutFrom(options) });
      const follow = (job: Job, signal: AbortSignal) =>
        followJob(job, {
          store,
          screen,
          signal,
          ...(options.logs === true ? { onLog: (line) => warn(textOf(line)) } : {}),
        });
      try {
        if (owned) {
          say('No server is running on this database: the job runs in this process');
          // Loaded here: not needed when a server runs the job.
          const { openEngine } = await import('./engine.ts');
          const engine = await openEngine(config, store);
          try {
            // A job left running by a killed server would otherwise block the workflow forever.
            await engine.reap();
            const job = await submit(store, place, { owned });
            await engine.start();
            const seen = await follow(job, interrupted.signal);
            report(seen.finishedAt === null ? await canceled(store, seen, follow) : seen, options);
          } finally {
            await engine.stop();
          }
          return;
        }
        const job = await submit(store, place);
        if (isWaitedFor(options)) {
          report(await follow(job, interrupted.signal), options);
        } else {
          print(options, shownJob(job), [job.id]);
          say(`Queued; \`flowhook jobs watch ${job.id}\` follows it`);
        }
      } finally {
        interrupted.clear();
      }
    });
  orRemote(run, local, runAt);
}

/**
 * Queues a job.
 *
 * @param options.owned whether no server is running: a job in the way then waits for one
 * @throws Problem as `submitJob`, with the job in the way named in the sentence
 */
export async function submit(
  store: Store,
  { teamId, workflowId }: Place,
  options: { owned?: boolean } = {},
): Promise<Job> {
  try {
    return (await submitJob(store, { teamId, workflowId, origin: 'cli', idempotencyKey: null })).job;
  } catch (error) {
    const id = error instanceof Problem ? error.headers['x-job-id'] : undefined;
    const job = id === undefined ? undefined : await store.jobs.get({ teamId, id });
    if (!(error instanceof Problem) || job === undefined) throw error;
    throw new Problem(error.code, {
      sentence:
        `${error.message}: ${job.id} (${stateWords(job)}). ` +
        `\`flowhook ${options.owned === true ? 'serve` would run it' : `jobs watch ${job.id}\` follows it`}, ` +
        `\`flowhook jobs cancel ${job.id}\` ends it`,
      headers: error.headers,
      cause: error,
    });
  }
}

/** Cancels a job that runs in this process, and waits until it has ended. */
async function canceled(
  store: Store,
  { teamId, id }: Job,
  follow: (job: Job, signal: AbortSignal) => Promise<Job>,
): Promise<Job> {
  say('Canceling the job; Ctrl-C ends this process at once');
  const by =
    'Canceled at the command line: the command that ran it was interrupted, or its --timeout was over';
  const asked = await store.jobs.cancel({ teamId, id, by });
  if (asked === undefined) throw new Problem('job_not_found');
  return follow(asked.job, new AbortController().signal);
}
