/** Everything known about a run in one file, to send along when asking for help. */
import type { Job, LogLine } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { attemptLog } from './attempt-log.ts';

/** At most this many of the newest lines. */
const LOG_LINES = 1_000;

/** JSON: the job, the end of its last log, its events, and its workflow. */
export async function debugBundle(job: Job): Promise<string> {
  const [log, events, workflow] = await Promise.all([
    job.attempt === 0 ? [] : lastLines(job),
    flowhook.events.history({ jobId: job.id }).take(50),
    flowhook.workflows.get(job.workflowId).catch((error: Error) => ({ error: error.message })),
  ]);
  return JSON.stringify({ takenAt: new Date().toISOString(), job, workflow, events, log }, null, 2);
}

async function lastLines({ id, attempt }: Job): Promise<LogLine[]> {
  const kept: LogLine[] = [];
  for await (const line of attemptLog(id, { attempt })) {
    kept.push(line);
    if (kept.length >= 2 * LOG_LINES) kept.splice(0, LOG_LINES);
  }
  return kept.slice(-LOG_LINES);
}
