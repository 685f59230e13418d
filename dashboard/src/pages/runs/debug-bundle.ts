/** All that is known of a run in one file, for whoever is asked for help. */
import type { Job, LogLine } from 'flowhook-client';
import { flowhook } from '../../client.ts';

/** The newest lines that are taken along. */
const LOG_LINES = 1_000;

/** JSON: the job, the end of its last log, what it told, and its workflow. */
export async function debugBundle(job: Job): Promise<string> {
  const [log, events, workflow] = await Promise.all([
    job.attempt === 0 ? [] : lastLines(job),
    flowhook.events.history({ jobId: job.id }).take(50),
    flowhook.workflows.get(job.workflowId).catch((error: Error) => ({ error: error.message })),
  ]);
  return JSON.stringify({ takenAt: new Date().toISOString(), job, workflow, events, log }, null, 2);
}

async function lastLines({ id, attempt }: Job): Promise<LogLine[]> {
  let kept: LogLine[] = [];
  for (let after = 0; ; ) {
    const { lines, next } = await flowhook.jobs.logs(id, { attempt, after });
    kept = [...kept, ...lines].slice(-LOG_LINES);
    if (next === null || lines.length === 0) return kept;
    after = next;
  }
}
