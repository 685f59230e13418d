/** `flowhook jobs logs`: prints the log of an attempt, and with `--follow` continues while it grows. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Job } from '../model/job.ts';
import { shownLine, textOf } from '../resources/job.ts';
import type { Store } from '../store/store.ts';
import { findJob } from './find.ts';
import { logTail, type TailLine } from './follow-job.ts';
import { attemptFrom } from './job-flags.ts';
import { addStoreOptions, withStore } from './open.ts';
import { toOutput } from './output.ts';
import { orRemote } from './remote.ts';
import { jobLogsAt } from './remote-jobs.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { untilInterrupted } from './until-interrupted.ts';

const LOOK_MS = 200;

export function addJobLogs(jobs: Command): void {
  const logs = jobs
    .command('logs')
    .description('print the log of a job (with --json: one JSON object per line)')
    .argument('<job>', 'its id')
    .option('--attempt <number>', 'which attempt (default: the last)')
    .option('--follow', 'continue until the job has ended, including further attempts');
  const local = (id: string, options: Options) =>
    withStore(options, { make: false }, async (store) => {
      const attempt = attemptFrom(options);
      const interrupted = untilInterrupted();
      try {
        const job = await findJob(store, id);
        if (attempt !== undefined && attempt > job.attempt && options.follow !== true) {
          say(`Job ${job.id} has had ${job.attempt} attempts: there is no attempt ${attempt}`);
        }
        const following = options.follow === true ? interrupted.signal : undefined;
        const lines = linesOf(store, job, attempt, following);
        await toOutput(written(lines, options.json === true));
      } finally {
        interrupted.clear();
      }
    });
  orRemote(addStoreOptions(logs), local, jobLogsAt);
}

/** The lines of one attempt; with `following`, all lines until the job has ended or the signal is aborted. */
async function* linesOf(
  store: Store,
  job: Job,
  from: number | undefined,
  following: AbortSignal | undefined,
): AsyncGenerator<TailLine> {
  const tail = logTail(store, job, from);
  if (following === undefined) {
    yield* tail(from === undefined ? job : { ...job, attempt: Math.min(from, job.attempt) });
    return;
  }
  let now: Job | undefined = job;
  while (now !== undefined) {
    yield* tail(now);
    if (now.finishedAt !== null || following.aborted) return;
    await pause(LOOK_MS, undefined, { signal: following }).catch(() => {});
    now = await store.jobs.get({ teamId: job.teamId, id: job.id });
  }
}

async function* written(lines: AsyncIterable<TailLine>, json: boolean): AsyncGenerator<Uint8Array> {
  let current: number | undefined;
  for await (const { attempt, line } of lines) {
    if (current !== undefined && current !== attempt) say(`-- attempt ${attempt}`);
    current = attempt;
    yield Buffer.from(`${json ? JSON.stringify({ attempt, ...shownLine(line) }) : textOf(line)}\n`);
  }
}
