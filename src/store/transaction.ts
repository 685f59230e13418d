/** What an operation is given: ways to the database, the time, and what it tells of its commit. */
import type { EventType } from '../model/event.ts';
import type { Quotas } from '../model/quota.ts';
import type { Logger } from '../observe/log.ts';
import type { JobRow, WorkflowRow } from './rows.ts';
import type { Sql } from './sql.ts';

/**
 * For reads: each statement runs by itself, on any connection; reads that must be consistent with each other go into
 * `db.snapshot`. `now` is in epoch milliseconds.
 */
export interface View {
  readonly db: Sql;
  readonly now: number;
  /** What is locked already for the call that this is for. */
  readonly locked?: Locked;
}

/**
 * For writes, inside a transaction. The operation may be retried, so it must have no effect outside the database. It
 * may send statements without awaiting those before; they run in the order in which they were sent.
 */
export interface Tx extends View {
  /** The URL of the service as others reach it, for the bodies of events. */
  readonly publicUrl: string;
  /** For teams without quotas of their own. */
  readonly quotas: Quotas;
  /** What watchers are told after the commit. */
  readonly touched: Touched;
  /** The events of this transaction, numbered and written just before its commit. */
  readonly events: PendingEvent[];
  /** New jobs, written just before the events, with those of other calls; undefined: they are written at once. */
  readonly jobs?: JobRow[];
  /** How many deliveries of removed webhooks may still be canceled, where calls share a transaction. */
  readonly cancels?: { left: number };
  /** The counter of key changes, when this transaction changes keys. */
  keysChanged?: number;
  /** An earlier call has done this already, so that no audit line is written. */
  repeated?: boolean;
}

/** Rows that the driver has locked for a call, and read since: nobody has changed them. */
export interface Locked {
  readonly workflow?: WorkflowRow;
  /** The unfinished jobs of that workflow, by slot. */
  readonly unfinished?: JobRow[];
  readonly job?: JobRow;
}

/** What happened. */
export interface NewEvent {
  teamId: string;
  type: EventType;
  /** null: of no workflow; only subscriptions to the whole team receive it. */
  workflowId: string | null;
  jobId: string | null;
  finishedAt: number | null;
  data: Record<string, unknown>;
  /** The trace that it belongs to, in the form of `traceparent`. */
  trace?: string | null;
}

/** An event that `writeEvents` will number and write. */
export interface PendingEvent extends NewEvent {
  id: string;
  /** When it happened, in epoch milliseconds. */
  at: number;
  /** The delivery of a test, which goes to one webhook, whatever that is subscribed to. */
  test?: { deliveryId: string; webhookId: string };
  /** A webhook that does not get it. */
  exceptWebhookId?: string;
}

/** Names a lane: the queue of one webhook's deliveries. */
export interface LaneName {
  teamId: string;
  webhookId: string;
}

/** What a commit may have changed, for `Store.watch`. */
export interface Touched {
  keys: boolean;
  jobs: boolean;
  /** Cancellation of a running job was requested. */
  cancels: boolean;
  deliveries: boolean;
  /** The webhooks for which something became due, if they are few; null means that it may be any. */
  lanes: readonly LaneName[] | null;
}

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
