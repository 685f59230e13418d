/** Collects what a commit touches while its transaction runs, and tells of it afterwards: the same for every driver. */
import type { Logger } from '../observe/log.ts';
import type { Touched } from './store.ts';

/** How many webhooks are reported by name; beyond that, any may have something due. */
const MAX_LANES = 64;

/** Nothing touched so far. */
export function untouched(): Touched {
  return { keys: false, jobs: false, cancels: false, deliveries: false, lanes: [] };
}

/** Anything may have changed: reported when another process has committed. */
export const ANYTHING: Touched = { keys: true, jobs: true, cancels: true, deliveries: true, lanes: null };

/** Tells those who watch of a commit; what one of them throws is logged. */
export function tell(watchers: ReadonlySet<(touched: Touched) => void>, touched: Touched, log: Logger): void {
  for (const watcher of watchers) {
    try {
      watcher(touched);
    } catch (error) {
      log.error({ err: error }, 'watcher.failed');
    }
  }
}

/** Reports that a webhook has something due, or that what senders know of it is outdated. */
export function touchLane({ touched }: { touched: Touched }, teamId: string, webhookId: string): void {
  const { lanes } = touched;
  touched.deliveries = true;
  if (lanes === null) return;
  if (lanes.some((lane) => lane.webhookId === webhookId && lane.teamId === teamId)) return;
  touched.lanes = lanes.length < MAX_LANES ? [...lanes, { teamId, webhookId }] : null;
}

/** Reports the same of any webhook. */
export function touchAllLanes({ touched }: { touched: Touched }): void {
  touched.deliveries = true;
  touched.lanes = null;
}
