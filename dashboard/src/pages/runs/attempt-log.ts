/** The whole log of one attempt, page by page. */
import type { LogLine } from 'flowhook-client';
import { flowhook } from '../../client.ts';

export async function* attemptLog(
  jobId: string,
  options: { attempt: number; signal?: AbortSignal },
): AsyncGenerator<LogLine> {
  for (let after = 0; ; ) {
    const { lines, next } = await flowhook.jobs.logs(jobId, { ...options, after });
    yield* lines;
    if (next === null || lines.length === 0) return;
    after = next;
  }
}
