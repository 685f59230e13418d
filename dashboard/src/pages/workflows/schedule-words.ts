/** A schedule in words. */
import type { Workflow } from 'flowhook-client';
import { duration } from '../../parts/quantity.ts';

/** A run that is late by this much waits for something: the schedule is looked at every second. */
const DUE_MS = 1_000;

/** `every 10 min`, `cron 0 2 * * *, Europe/Berlin`, or that it runs on demand. */
export function scheduleWords({ schedule, source }: Pick<Workflow, 'schedule' | 'source'>): string {
  if (source.type === 'push') return 'when pushed to';
  if (schedule === null) return 'on demand';
  if (schedule.everyMs !== undefined) return `every ${duration(schedule.everyMs)}`;
  return `cron ${schedule.cron}, ${schedule.timezone}`;
}

/** Whether a run should have begun by now. */
export function isDue(nextRunAt: string | null, nowMs: number): boolean {
  return nextRunAt !== null && Date.parse(nextRunAt) < nowMs - DUE_MS;
}
