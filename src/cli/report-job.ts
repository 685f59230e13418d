/** How a command ends that has followed a job. */

import type { Job } from '../model/job.ts';
import { shownJob } from '../resources/job.ts';
import { durationWords, parseDuration } from '../std/amounts.ts';
import { UsageError } from './exit.ts';
import { outcomeCode, publishedWords } from './job-words.ts';
import { print } from './output.ts';
import { say, warn } from './say.ts';
import type { Options } from './settings.ts';

/** Of a timer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Whether `run` waits for the end of the job. */
export function isWaitedFor({ wait, timeout, logs }: Options): boolean {
  return wait === true || timeout !== undefined || logs === true;
}

/** `--timeout` in milliseconds; undefined when it is missing. @throws UsageError */
export function timeoutFrom({ timeout }: Options): number | undefined {
  if (timeout === undefined) return undefined;
  const ms = parseDuration(timeout);
  if (ms !== undefined && ms > 0 && ms <= MAX_TIMEOUT_MS) return ms;
  throw new UsageError(
    `--timeout must be a duration such as 30s, 15m or 2h, up to 24 days, found "${timeout}"`,
  );
}

/** Prints the outcome of a job, or that it is still running, and sets the exit code accordingly. */
export function report(job: Job, options: Options): void {
  process.exitCode = outcomeCode(job);
  if (options.json === true) print(options, shownJob(job), []);
  if (job.finishedAt === null) {
    say(
      `The job continues: \`flowhook jobs watch ${job.id}\` follows it again, \`flowhook jobs cancel ${job.id}\` ends it`,
    );
    return;
  }
  if (job.state === 'finished') {
    const took = durationWords(job.finishedAt - (job.startedAt ?? job.createdAt));
    if (options.json !== true) print(options, null, [`${job.workflowId} ${publishedWords(job)} (${took})`]);
    return;
  }
  const why = job.state === 'failed' ? `failed (${job.reason ?? 'error'})` : 'was canceled';
  warn(`flowhook: Job ${job.id} ${why}: ${job.error ?? ''}`);
  if (job.state === 'failed') {
    say(`\`flowhook jobs logs ${job.id}\` shows what its last attempt wrote`);
  }
}
