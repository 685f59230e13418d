/** What an operation receives: access to the database, the time, and a record of what its commit touches. */
import type { EventType } from '../model/event.ts';
import type { Quotas } from '../model/quota.ts';
import type { Logger } from '../observe/log.ts';
import type { JobRow, WorkflowRow } from './rows.ts';
import type { Sql } from './sql.ts';

/**
 * For reads: each statement runs by itself, on any connection; reads that must be consistent with each other belong in
 * `db.snapshot`. `now` is in epoch milliseconds.
 */
export interface View {
  readonly db: Sql;
  readonly now: number;
  /** Rows that the driver has already locked for this call. */
  readonly locked?: Locked;
}

/**
 * For writes, inside a transaction. The operation may be retried, so it must have no effect outside the database. It may
 * send statements without awaiting earlier ones; they run in the order in which they were sent.
 */
export interface Tx extends View {
  /** The external URL of the service, for the bodies of events. */
  readonly publicUrl: string;
  /** For teams without quotas of their own. */
  readonly quotas: Quotas;
  /** Reported to watchers after the commit. */
  readonly touched: Touched;
  /** Events of this transaction, numbered and written just before its commit. */
  readonly events: PendingEvent[];
  /** New jobs, written just before the events, together with those of other calls; undefined: written immediately. */
  readonly jobs?: JobRow[];
  /** How many more deliveries of removed webhooks may be canceled, where calls share a transaction. */
  readonly cancels?: { left: number };
  /** The counter of key changes, if this transaction changes keys. */
  keysChanged?: number;
  /** Set when an earlier call has already made this change, so that no audit line is written. */
  repeated?: boolean;
}

/** Rows that the driver has locked and then read for a call: nobody else can change them. */
export interface Locked {
  readonly workflow?: WorkflowRow;
  /** Unfinished jobs of that workflow, by slot. */
  readonly unfinished?: JobRow[];
  readonly job?: JobRow;
}

export interface NewEvent {
  teamId: string;
  type: EventType;
  /** null for an event of no workflow: only subscriptions to the whole team receive it. */
  workflowId: string | null;
  jobId: string | null;
  finishedAt: number | null;
  data: Record<string, unknown>;
  /** The trace of the event, as `traceparent`. */
  trace?: string | null;
}

/** An event that `writeEvents` will number and write. */
export interface PendingEvent extends NewEvent {
  id: string;
  /** When it happened, in epoch milliseconds. */
  at: number;
  /** The delivery of a test event, which has one recipient even if that webhook is not subscribed to it. */
  test?: { deliveryId: string; webhookId: string };
  /** A webhook that does not receive the event. */
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
  /** Webhooks with deliveries that became due; null if there are too many to list. */
  lanes: readonly LaneName[] | null;
}

/** Maximum number of webhooks listed in `Touched.lanes`. */
const MAX_LANES = 64;

export function untouched(): Touched {
  return { keys: false, jobs: false, cancels: false, deliveries: false, lanes: [] };
}

/** Anything may have changed: reported when another process has committed. */
export const ANYTHING: Touched = { keys: true, jobs: true, cancels: true, deliveries: true, lanes: null };

/** Calls the watchers after a commit, and logs what they throw. */
export function notifyWatchers(
  watchers: ReadonlySet<(touched: Touched) => void>,
  touched: Touched,
  log: Logger,
): void {
  for (const watcher of watchers) {
    try {
      watcher(touched);
    } catch (error) {
      log.error({ err: error }, 'watcher.failed');
    }
  }
}

/** Reports that a webhook has something due, or that senders must reload it. */
export function touchLane({ touched }: { touched: Touched }, teamId: string, webhookId: string): void {
  const { lanes } = touched;
  touched.deliveries = true;
  if (lanes === null) return;
  if (lanes.some((lane) => lane.webhookId === webhookId && lane.teamId === teamId)) return;
  touched.lanes = lanes.length < MAX_LANES ? [...lanes, { teamId, webhookId }] : null;
}

/** Reports this of all webhooks. */
export function touchAllLanes({ touched }: { touched: Touched }): void {
  touched.deliveries = true;
  touched.lanes = null;
}
