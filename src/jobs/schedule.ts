/**
 * Queues jobs of workflows whose schedule is due. Any number of nodes may look: a schedule moves on from the time
 * at which it was due, so that one of them succeeds, and what was missed is one run at most.
 */
import { nextRunAt, startsRun } from '../model/schedule.ts';
import type { Logger } from '../observe/log.ts';
import type { Tracing } from '../observe/tracing.ts';
import { Chore } from '../std/chore.ts';
import type { DueSchedule } from '../store/job-operations.ts';
import type { Store } from '../store/store.ts';
import { EachAlone } from './each-alone.ts';

const EVERY_MS = 1_000;
/** Schedules that are looked up at once, and how often in one tick. */
const PAGE = 100;
const MAX_PAGES = 100;
/**
 * Fired at the same time, so that one wait for the disk is for several: of 4,000 on SQLite that took half the processor
 * time and less than two thirds of the time. More would win little, and on PostgreSQL, where a team may have three
 * quarters of a pool of ten, leave its calls waiting behind them.
 */
const AT_ONCE = 8;

interface SchedulerOptions {
  store: Store;
  log: Logger;
  random: () => number;
  /** Each run begins a trace; nothing where nothing is traced. */
  tracing?: Tracing | undefined;
}

/** What starts, stops and ticks; a tick fires all that is due. */
export function createScheduler(options: SchedulerOptions): Chore {
  const { log, random } = options;
  const schedules = new EachAlone<DueSchedule>({
    nameOf: (due) => ({ teamId: due.teamId, key: keyOf(due) }),
    failed: (err, { workflowId }) => log.error({ err, workflowId }, 'schedule.failed'),
    atOnce: AT_ONCE,
  });
  return new Chore({
    everyMs: EVERY_MS,
    random,
    work: (signal) => fireDue(options, schedules, signal),
    failed: (err) => log.error({ err }, 'schedule.failed'),
  });
}

async function fireDue(
  options: SchedulerOptions,
  schedules: EachAlone<DueSchedule>,
  signal: AbortSignal,
): Promise<void> {
  const { store } = options;
  // Those that could not be moved on are due as before: the next page goes on behind them.
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
    // Definitions are checked before they are stored. One that cannot be read after all must not be in the way
    // of the others each second: it is out of time until its workflow is applied again.
    log.error({ err, workflowId: due.workflowId, schedule }, 'schedule.unreadable');
    return { nextAt: null, run: false };
  }
}
