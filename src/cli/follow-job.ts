/** Follows a job until it ends, with a live line on a terminal and one line per change of its state; reads its log. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Job, LogLine } from '../model/job.ts';
import { printable } from '../std/printable.ts';
import { createLiveLine, type Screen } from '../std/progress-bar.ts';
import type { Store } from '../store/store.ts';
import { changeWords, liveWords, stateWords } from './job-words.ts';

/** How often the job is read: one row. */
const LOOK_MS = 100;
/** How many lines of a log are read at once. */
const LOG_LINES = 1_000;

export interface FollowOptions {
  store: Store;
  /** For messages. */
  screen: Screen;
  /** Ends the following, not the job. */
  signal: AbortSignal;
  /** Gets each line of its log, beginning with the current attempt. */
  onLog?: (line: LogLine) => void;
}

/** @returns the job when it has ended, or as it was when the signal came */
export async function followJob(job: Job, { store, screen, signal, onLog }: FollowOptions): Promise<Job> {
  const line = createLiveLine(screen, () => performance.now());
  const tail = onLog === undefined ? undefined : logTail(store, job);
  let now = job;
  let told = '';
  const rate = recordRate();
  try {
    for (;;) {
      const perSecond = rate(now, performance.now());
      if (tail !== undefined) {
        for await (const { line: written } of tail(now)) {
          line.clear();
          onLog?.(written);
        }
      }
      if (now.finishedAt !== null) return now;
      const state = stateWords(now);
      if (state !== told) {
        line.clear();
        screen.write(`${printable(`${now.id} ${changeWords(now, store.now())}`)}\n`);
        told = state;
      }
      line.show(() => liveWords(now, perSecond, store.now()));
      if (signal.aborted) return now;
      await pause(LOOK_MS, undefined, { signal }).catch(() => {});
      const found = await store.jobs.get({ teamId: job.teamId, id: job.id });
      if (found === undefined) throw new Error(`Job ${job.id} no longer exists`);
      now = found;
    }
  } finally {
    line.stop();
  }
}

/** A line of a log, with the attempt that wrote it. */
export interface TailLine {
  attempt: number;
  line: LogLine;
}

/**
 * Reads a job's log as it grows, beginning with an attempt (by default the current one). Each call yields the lines
 * since the previous one. It must get a job that was read *before* the call: the log of what had ended by then is
 * complete.
 */
export function logTail(
  store: Store,
  { teamId, id: jobId, attempt: current }: Job,
  from: number = Math.max(1, current),
): (job: Job) => AsyncGenerator<TailLine> {
  let attempt = from;
  let afterSeq = 0;
  return async function* (job) {
    while (attempt <= job.attempt) {
      const lines = await store.jobs.log({ teamId, jobId, attempt, afterSeq, limit: LOG_LINES });
      for (const line of lines) yield { attempt, line };
      afterSeq = lines.at(-1)?.seq ?? afterSeq;
      if (lines.length === LOG_LINES) continue;
      if (attempt === job.attempt) return;
      attempt += 1;
      afterSeq = 0;
    }
  };
}

/** Records per second since an attempt was first seen; undefined until their number has grown. */
function recordRate(): (job: Job, ms: number) => number | undefined {
  let first = { attempt: -1, records: 0, ms: 0 };
  /** Progress is reported only now and then: in between the rate stays the same. */
  let last = first;
  return (job, ms) => {
    const records = job.progress?.records ?? 0;
    if (first.attempt !== job.attempt) first = last = { attempt: job.attempt, records, ms };
    if (records > last.records) last = { attempt: job.attempt, records, ms };
    return last.ms === first.ms ? undefined : ((last.records - first.records) * 1_000) / (last.ms - first.ms);
  };
}
