/**
 * Queues jobs of workflows whose schedule is due. Any number of nodes may do so at once: a schedule is advanced by
 * compare-and-set on the time at which it was due, so that exactly one succeeds. Missed runs are made up by one at most.
 */
import { correctedDueAt, nextRunAt, startsRun, TOLERANCE_MS } from '../model/schedule.ts';
import type { Logger } from '../observe/log.ts';
import type { Tracing } from '../observe/tracing.ts';
import { Chore } from '../std/chore.ts';
import type { DueSchedule } from '../store/operations/jobs.ts';
import type { Store } from '../store/store.ts';
import { IsolatedBatch } from './isolated-batch.ts';

const EVERY_MS = 1_000;
/** Schedules read at once, and how many such pages one tick reads. */
const PAGE = 100;
const MAX_PAGES = 100;
/**
 * Schedules fired concurrently, so that several share one commit: for 4,000 on SQLite that took half the processor time
 * and less than two thirds of the time. More would gain little, and on PostgreSQL, where a team may use three quarters of
 * a pool of ten connections, other calls of the team would have to wait.
 */
const AT_ONCE = 8;

interface SchedulerOptions {
  store: Store;
  log: Logger;
  random: () => number;
  /** Begins a trace for each run; undefined when tracing is off. */
  tracing?: Tracing | undefined;
}

/** A chore whose tick fires all schedules that are due; before, it brings back those that a wrong clock has put off. */
export function createScheduler(options: SchedulerOptions): Chore {
  const { log, random } = options;
  const schedules = new IsolatedBatch<DueSchedule>({
    nameOf: (due) => ({ teamId: due.teamId, key: keyOf(due) }),
    failed: (err, { workflowId }) => log.error({ err, workflowId }, 'schedule.failed'),
    atOnce: AT_ONCE,
  });
  /** The time of the last tick. */
  let latestMs: number | undefined;
  return new Chore({
    everyMs: EVERY_MS,
    random,
    async work(signal) {
      const nowMs = options.store.now();
      // At the start, because the clock may have been ahead in an earlier life.
      if (latestMs === undefined || nowMs < latestMs - TOLERANCE_MS) await bringBack(options, signal);
      latestMs = nowMs;
      await fireDue(options, schedules, signal);
    },
    failed: (err) => log.error({ err }, 'schedule.failed'),
  });
}

/** Whatever was fired while the clock was ahead got its next time from that clock, and would not run until then. */
async function bringBack({ store, log }: SchedulerOptions, signal: AbortSignal): Promise<void> {
  for (let after: DueSchedule | null = null; ; ) {
    const page: DueSchedule[] = await store.schedules.ahead({ after, limit: PAGE });
    for (const due of page) {
      if (signal.aborted) return;
      const { teamId, workflowId, dueAt } = due;
      const nextAt = nextAtOf(log, due, store.now());
      if (nextAt === undefined) continue;
      await store.schedules.fire({ teamId, workflowId, dueAt, nextAt, run: false });
      log.warn({ workflowId, dueAt, nextAt }, 'schedule.brought_back: the clock was ahead when it was set');
    }
    after = page.at(-1) ?? null;
    if (page.length < PAGE) return;
  }
}

function nextAtOf(
  log: Logger,
  { schedule, dueAt, workflowId }: DueSchedule,
  nowMs: number,
): number | undefined {
  try {
    return correctedDueAt(schedule, { dueAt, nowMs });
  } catch (err) {
    log.error({ err, workflowId, schedule }, 'schedule.unreadable');
    return undefined;
  }
}

async function fireDue(
  options: SchedulerOptions,
  schedules: IsolatedBatch<DueSchedule>,
  signal: AbortSignal,
): Promise<void> {
  const { store } = options;
  // Schedules that could not be fired stay due, so the next page must reach beyond them.
  const left = new Set<string>();
  for (let page = 0; page < MAX_PAGES && !signal.aborted; page++) {
    const limit = PAGE + left.size;
    const due = await store.schedules.due({ limit });
    const others = due.filter((one) => !left.has(keyOf(one)));
    const failed = await schedules.each(others, async (schedule) => {
      if (!signal.aborted) await fire(options, schedule);
    });
    for (const one of failed) left.add(keyOf(one));
    if (due.length < limit) return;
  }
}

function keyOf({ teamId, workflowId }: DueSchedule): string {
  return `${teamId} ${workflowId}`;
}

async function fire({ store, log, tracing }: SchedulerOptions, due: DueSchedule): Promise<void> {
  const { teamId, workflowId, schedule, dueAt } = due;
  const nowMs = store.now();
  const { nextAt, run } = decide(log, due, nowMs);
  const trace = tracing?.begin() ?? null;
  const { outcome, job } = await store.schedules.fire({ teamId, workflowId, dueAt, nextAt, run, trace });
  if (outcome === 'taken') return;
  log.info(
    { workflowId, jobId: job?.id, missed: schedule.missed, lateMs: nowMs - dueAt },
    `schedule.${outcome}`,
  );
}

function decide(log: Logger, due: DueSchedule, nowMs: number): { nextAt: number | null; run: boolean } {
  const { schedule, dueAt } = due;
  try {
    return {
      nextAt: nextRunAt(schedule, Math.max(nowMs, dueAt)),
      run: startsRun(schedule, { dueAt, nowMs }),
    };
  } catch (err) {
    // Definitions are validated before they are stored. If one is invalid all the same, it must not hold up the
    // others every second: it gets no next time until its workflow is applied again.
    log.error({ err, workflowId: due.workflowId, schedule }, 'schedule.unreadable');
    return { nextAt: null, run: false };
  }
}
