/**
 * Queues jobs for workflows whose schedule is due. Any number of nodes may do this concurrently: a schedule is advanced by
 * compare-and-set on its due time, so only one node succeeds. At most one run makes up for all missed ones.
 */
import { correctedDueAt, nextRunAt, startsRun, TOLERANCE_MS } from '../model/schedule.ts';
import type { Logger } from '../observe/log.ts';
import type { Tracing } from '../observe/tracing.ts';
import { Chore } from '../std/chore.ts';
import type { DueSchedule } from '../store/operations/jobs.ts';
import { quietMs } from '../store/quiet.ts';
import type { Store } from '../store/store.ts';
import { IsolatedBatch } from './isolated-batch.ts';

const EVERY_MS = 1_000;
/** `PAGE` is the number of schedules per page, and `MAX_PAGES` the maximum number of pages per tick. */
const PAGE = 100;
const MAX_PAGES = 100;
/**
 * Maximum number of schedules that are fired concurrently, so that several share one commit. With 8, firing 4,000
 * schedules on SQLite took half the processor time and less than two thirds of the elapsed time. A higher number gains
 * little. On PostgreSQL, where one team may use three quarters of a pool of ten connections, a higher number would make
 * other calls of the team wait.
 */
const AT_ONCE = 8;

interface SchedulerOptions {
  store: Store;
  log: Logger;
  random: () => number;
  /** Starts a trace for each run. Undefined when tracing is off. */
  tracing?: Tracing | undefined;
}

/** Creates a chore. Its tick corrects the schedules that a wrong clock has postponed, then fires all due schedules. */
export function createScheduler(options: SchedulerOptions): Chore {
  const { store, log, random } = options;
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
      const nowMs = store.now();
      // The first tick also corrects schedules, because the clock may have been ahead while a previous process ran.
      if (latestMs === undefined || nowMs < latestMs - TOLERANCE_MS) await correct(options, signal);
      latestMs = nowMs;
      await fireDue(options, schedules, signal);
    },
    failed: (err) => log.error({ err }, 'schedule.failed'),
    quietMs: () => quietMs(store, store.schedules.nextDueAt),
    // Operations that change a schedule are reported like operations that make a job due.
    watch: (poller) => store.watch(({ jobs }) => jobs && poller.wake()),
  });
}

/**
 * Corrects the next run time of schedules that were fired while the clock was ahead. These schedules would otherwise be
 * due too late.
 */
async function correct({ store, log }: SchedulerOptions, signal: AbortSignal): Promise<void> {
  for (let after: DueSchedule | null = null; ; ) {
    const page: DueSchedule[] = await store.schedules.ahead({ after, limit: PAGE });
    for (const due of page) {
      if (signal.aborted) return;
      const { teamId, workflowId, dueAt } = due;
      const nextAt = nextAtOf(log, due, store.now());
      if (nextAt === undefined) continue;
      await store.schedules.fire({ teamId, workflowId, dueAt, nextAt, run: false });
      log.warn(
        { workflowId, dueAt, nextAt },
        'schedule.corrected: the clock was ahead when the next run was computed',
      );
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
  // Schedules that could not be fired are still due, so `due` returns them again. The next page must be larger by the
  // number of these schedules.
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
    // Definitions are validated before they are stored. If the schedule of a stored definition is invalid nevertheless,
    // it must not delay the other schedules every second. It gets no next run time until its workflow is applied again.
    log.error({ err, workflowId: due.workflowId, schedule }, 'schedule.unreadable');
    return { nextAt: null, run: false };
  }
}
