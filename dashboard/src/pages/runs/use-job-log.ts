/** The log of one attempt of a run: as a whole, and as it grows. */
import type { Job, LogLine } from 'flowhook-client';
import { useEffect, useState } from 'react';
import { flowhook } from '../../client.ts';

export interface JobLog {
  lines: readonly (LogLine & { attempt: number })[];
  error: Error | null;
  isLoading: boolean;
}

/** What comes within so many milliseconds is shown at once. */
const GATHER_MS = 100;
const NOTHING: JobLog = { lines: [], error: null, isLoading: true };

/** @param attempt one that has ended; undefined: the one under way, and those that follow it */
export function useJobLog(job: Job, attempt: number | undefined): JobLog {
  const [log, setLog] = useState<JobLog>(NOTHING);
  const jobId = job.id;
  const hasStarted = job.attempt > 0;
  useEffect(() => {
    if (!hasStarted) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    let lines: JobLog['lines'] = [];
    let fresh: (LogLine & { attempt: number })[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (changes: Partial<JobLog> = {}) => {
      clearTimeout(timer);
      timer = undefined;
      lines = [...lines, ...fresh];
      fresh = [];
      if (!signal.aborted) setLog({ lines, error: null, isLoading: false, ...changes });
    };
    const read = async () => {
      const source =
        attempt === undefined
          ? flowhook.jobs.followLogs(jobId, { signal })
          : linesOf(jobId, { attempt, signal });
      timer = setTimeout(show, GATHER_MS);
      for await (const line of source) {
        fresh.push(line);
        timer ??= setTimeout(show, GATHER_MS);
      }
    };
    setLog(NOTHING);
    read().then(
      () => show(),
      (error: Error) => show({ error }),
    );
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [jobId, attempt, hasStarted]);
  return log;
}

async function* linesOf(jobId: string, options: { attempt: number; signal: AbortSignal }) {
  for (let after = 0; ; ) {
    const { lines, next } = await flowhook.jobs.logs(jobId, { ...options, after });
    for (const line of lines) yield { ...line, attempt: options.attempt };
    if (next === null || lines.length === 0) return;
    after = next;
  }
}
