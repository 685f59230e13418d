/**
 * Follows a job until it ends, and reads its log. Prints a line for each change of state and, on a terminal, a live
 * line.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Flowhook, Job, LogLine } from '../../client/src/flowhook-client.ts';
import { durationWords } from '../std/amounts.ts';
import { createLiveLine } from '../std/progress-bar.ts';
import { changeWords, liveWords, logText, outcomeCode, publishedWords, stateWords } from './job-words.ts';
import type { Options } from './options.ts';
import { print, say, screen, warn } from './terminal.ts';

/** The maximum number of log lines that a request reads. */
const LOG_LINES = 1_000;

export interface FollowOptions {
  client: Flowhook;
  lookMs: number;
  /** Ends the following, not the job. */
  signal: AbortSignal;
  /** Whether to print the job's log to standard error, beginning with the current attempt. */
  logs?: boolean;
}

/** Returns the job when it has ended. If the signal is aborted earlier, returns the job in its last known state. */
export async function followJob(
  id: string,
  { client, lookMs, signal, logs = false }: FollowOptions,
): Promise<Job> {
  const line = createLiveLine(screen, () => performance.now());
  let job = await client.jobs.get(id);
  const tail = logs ? logTail(client, job) : undefined;
  let printed = '';
  const rate = recordRate();
  try {
    for (;;) {
      const now = job;
      const perSecond = rate(now, performance.now());
      if (tail !== undefined) {
        for await (const written of tail(now)) {
          line.clear();
          warn(logText(written));
        }
      }
      if (now.finishedAt !== null) return now;
      const state = stateWords(now);
      if (state !== printed) {
        line.clear();
        say(`${now.id} ${changeWords(now, Date.now())}`);
        printed = state;
      }
      line.show(() => liveWords(now, perSecond, Date.now()));
      if (signal.aborted) return now;
      await pause(lookMs, undefined, { signal }).catch(() => {});
      job = await client.jobs.get(id);
    }
  } finally {
    line.stop();
  }
}

/**
 * Reads the log of a job as it grows, beginning with an attempt (default: the current attempt). Each call yields the
 * lines since the previous call. The argument of each call must be a job that was read *before* the call: if that job
 * had already ended, its log is complete.
 */
export function logTail(
  client: Flowhook,
  { id, attempt: current }: Job,
  from: number = Math.max(1, current),
): (job: Job) => AsyncGenerator<LogLine & { attempt: number }> {
  let attempt = from;
  let after = 0;
  return async function* (job) {
    while (attempt <= job.attempt) {
      const { lines } = await client.jobs.logs(id, { attempt, after, limit: LOG_LINES });
      for (const line of lines) yield { attempt, ...line };
      after = lines.at(-1)?.seq ?? after;
      if (lines.length === LOG_LINES) continue;
      if (attempt === job.attempt) return;
      attempt += 1;
      after = 0;
    }
  };
}

/**
 * Measures the number of records per second since an attempt was first seen. The rate is undefined until the first
 * record.
 */
function recordRate(): (job: Job, ms: number) => number | undefined {
  let first = { attempt: -1, records: 0, ms: 0 };
  /** A job reports its progress once a second. Between two reports the rate stays the same. */
  let last = first;
  return (job, ms) => {
    const records = job.progress?.records ?? 0;
    if (first.attempt !== job.attempt) first = last = { attempt: job.attempt, records, ms };
    if (records > last.records) last = { attempt: job.attempt, records, ms };
    return last.ms === first.ms ? undefined : ((last.records - first.records) * 1_000) / (last.ms - first.ms);
  };
}

/** Prints the outcome of a job, or that the job is still running, and sets the exit code. */
export function report(job: Job, options: Options): void {
  process.exitCode = outcomeCode(job);
  if (options.json === true) print(options, job, []);
  if (job.finishedAt === null) {
    say(
      `The job has not ended yet. Follow it with \`flowhook jobs watch ${job.id}\`, or cancel it with \`flowhook jobs cancel ${job.id}\``,
    );
    return;
  }
  if (job.state === 'finished') {
    const took = durationWords(Date.parse(job.finishedAt) - Date.parse(job.startedAt ?? job.queuedAt));
    if (options.json !== true) print(options, null, [`${job.workflowId} ${publishedWords(job)} (${took})`]);
    return;
  }
  const why = job.state === 'failed' ? `failed (${job.reason ?? 'error'})` : 'was canceled';
  warn(`flowhook: Job ${job.id} ${why}: ${job.error ?? ''}`);
  if (job.state === 'failed') {
    say(`To see the log of the last attempt, run \`flowhook jobs logs ${job.id}\``);
  }
}
