/** How a command ends that has followed a job. */
import { shownJob } from '../http/extensions/shown-job.ts';
import type { Job } from '../model/job.ts';
import { durationWords } from '../std/amounts.ts';
import { outcomeCode, publishedWords } from './job-words.ts';
import { print } from './output.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';

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
  process.stderr.write(`flowhook: Job ${job.id} ${why}: ${job.error ?? ''}\n`);
  if (job.state === 'failed') {
    say(`\`flowhook jobs logs ${job.id}\` shows what its last attempt wrote`);
  }
}
