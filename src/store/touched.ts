/** What a commit has touched, gathered while its transaction runs: the same for every driver. */
import type { Touched } from './store.ts';

/** Webhooks that the watchers are told by name; of more they are told that any may have something due. */
const MAX_LANES = 64;

/** Nothing touched so far. */
export function untouched(): Touched {
  return { keys: false, jobs: false, cancels: false, deliveries: false, lanes: [] };
}

/** Everything may have been: what another process did. */
export const ANYTHING: Touched = { keys: true, jobs: true, cancels: true, deliveries: true, lanes: null };

/** Notes that a webhook has something due, or that what is known of it elsewhere is no longer true. */
export function touchLane({ touched }: { touched: Touched }, teamId: string, webhookId: string): void {
  const { lanes } = touched;
  touched.deliveries = true;
  if (lanes === null) return;
  if (lanes.some((lane) => lane.webhookId === webhookId && lane.teamId === teamId)) return;
  touched.lanes = lanes.length < MAX_LANES ? [...lanes, { teamId, webhookId }] : null;
}

/** Notes that any webhook may have something due, or be known too badly elsewhere. */
export function touchAllLanes({ touched }: { touched: Touched }): void {
  touched.deliveries = true;
  touched.lanes = null;
}
