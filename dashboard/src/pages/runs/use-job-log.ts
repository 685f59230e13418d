/** The log of a run: of one attempt as a whole, or following the current one as it grows. */
import type { Job } from 'flowhook-client';
import { useEffect, useState } from 'react';
import { flowhook } from '../../client.ts';
import type { Line } from '../../parts/log-rows.ts';
import { attemptLog } from './attempt-log.ts';

export interface JobLog {
  lines: readonly Line[];
  error: Error | null;
  isLoading: boolean;
}

/** Lines that arrive within this many milliseconds are rendered together. */
const GATHER_MS = 100;
const NOTHING: JobLog = { lines: [], error: null, isLoading: true };

/** @param attempt one that has ended; undefined: the current one and those after it */
export function useJobLog(job: Job, attempt: number | undefined): JobLog {
  const [log, setLog] = useState<JobLog>(NOTHING);
  const jobId = job.id;
  const hasStarted = job.attempt > 0;
  useEffect(() => {
    if (!hasStarted) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    let lines: JobLog['lines'] = [];
    let fresh: Line[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (changes: Partial<JobLog> = {}) => {
      clearTimeout(timer);
      timer = undefined;
      lines = [...lines, ...fresh];
      fresh = [];
      // Before the first line nobody knows yet whether there are any.
      if (!signal.aborted) setLog({ lines, error: null, isLoading: lines.length === 0, ...changes });
    };
    const read = async () => {
      const source =
        attempt === undefined
          ? flowhook.jobs.followLogs(jobId, { signal })
          : attemptLog(jobId, { attempt, signal });
      timer = setTimeout(show, GATHER_MS);
      for await (const line of source) {
        fresh.push(attempt === undefined ? line : { ...line, attempt });
        timer ??= setTimeout(show, GATHER_MS);
      }
    };
    setLog(NOTHING);
    read().then(
      () => show({ isLoading: false }),
      (error: Error) => show({ error, isLoading: false }),
    );
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [jobId, attempt, hasStarted]);
  return log;
}
