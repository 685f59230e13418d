/** What an operation receives: access to the database, the time, and a record of what its commit touches. */
import type { EventType } from '../model/event.ts';
import type { Quotas } from '../model/quota.ts';
import type { Logger } from '../observe/log.ts';
import type { JobRow, WorkflowRow } from './rows.ts';
import type { Sql } from './sql.ts';

/**
 * The context of operations that read. Each statement runs by itself, on any connection; reads that must be consistent
 * with each other belong in `db.snapshot`. `now` is in epoch milliseconds.
 */
export interface View {
  readonly db: Sql;
  readonly now: number;
  /** Rows that the driver has already locked for this call. */
  readonly locked?: Locked;
}

/**
 * The context of operations that write. They run inside a transaction, which may be retried, so an operation must have
 * no effect outside the database. An operation may send statements without awaiting earlier ones; statements run in the
 * order in which they were sent.
 */
export interface Tx extends View {
  /** The external URL of the service, which the bodies of events contain. */
  readonly publicUrl: string;
  /** Quotas of teams that have no quotas of their own. */
  readonly quotas: Quotas;
  /** Reported to watchers after the commit. */
  readonly touched: Touched;
  /** Events of this transaction. They are numbered and written just before the commit. */
  readonly events: PendingEvent[];
  /** What this transaction makes due, by team. It is written with the events (see `operations/agenda.ts`). */
  readonly dues: Map<string, Agenda>;
  /**
   * New jobs of all calls that share the transaction. They are written together, just before the events. Undefined if
   * each job is written immediately.
   */
  readonly jobs?: JobRow[];
  /** If several calls share the transaction: how many more deliveries of removed webhooks it may cancel. */
  readonly cancels?: { left: number };
  /** The new value of the counter of key changes, if this transaction changes keys. */
  keysChanged?: number;
  /** Set if an earlier call has already made the same change. No audit line is written then. */
  repeated?: boolean;
}

/** Rows that the driver has locked and then read for a call. Nobody else can change these rows before the commit. */
export interface Locked {
  readonly workflow?: WorkflowRow;
  /** Unfinished jobs of `workflow`, ordered by slot. */
  readonly unfinished?: JobRow[];
  readonly job?: JobRow;
}

export interface NewEvent {
  teamId: string;
  type: EventType;
  /** null if the event does not belong to a workflow. Only subscriptions to the whole team receive such an event. */
  workflowId: string | null;
  jobId: string | null;
  finishedAt: number | null;
  data: Record<string, unknown>;
  /** The trace of the event, as a `traceparent` header. */
  trace?: string | null;
}

/** An event that `writeEvents` has yet to number and write. */
export interface PendingEvent extends NewEvent {
  id: string;
  /** When it happened, in epoch milliseconds. */
  at: number;
  /**
   * Set for an event of one webhook, which receives it even if it is not subscribed to it. `revision` is that of the rule
   * that shapes it; null: none does. `deliveryId` is set for a test event.
   */
  only?: { webhookId: string } & (
    | { deliveryId: string; revision: number | null }
    | { deliveryId: null; revision: number }
  );
  /** The id of a webhook that does not receive the event. */
  exceptWebhookId?: string;
}

/** What a team may have to do (see `operations/agenda.ts`). */
export type AgendaItem = 'jobs' | 'lanes' | 'usage' | 'prune' | 'decisions' | 'fresh';

/** When each item of a team is due, in epoch milliseconds. Null or missing: no such work is waiting. */
export type Agenda = Partial<Record<AgendaItem, number | null>>;

/** Names a lane: the queue of one webhook's deliveries. */
export interface LaneName {
  teamId: string;
  webhookId: string;
}

/** What a commit may have changed. `Store.watch` reports this to listeners. */
export interface Touched {
  keys: boolean;
  jobs: boolean;
  /** Teams whose jobs may be due; null if there are too many to list. */
  teams: readonly string[] | null;
  /** Whether cancellation of a running job was requested. */
  cancels: boolean;
  deliveries: boolean;
  /** Webhooks with deliveries that became due; null if there are too many to list. */
  lanes: readonly LaneName[] | null;
  /** Whether events wait to be judged by the rules of webhooks. */
  decisions: boolean;
}

/** Maximum number of webhooks listed in `Touched.lanes`. */
const MAX_LANES = 64;

export function untouched(): Touched {
  return {
    keys: false,
    jobs: false,
    teams: [],
    cancels: false,
    deliveries: false,
    lanes: [],
    decisions: false,
  };
}

/** Everything may have changed. Reported when another process has committed. */
export const ANYTHING: Touched = {
  keys: true,
  jobs: true,
  teams: null,
  cancels: true,
  deliveries: true,
  lanes: null,
  decisions: true,
};

/** Calls the watchers after a commit, and logs any error that a watcher throws. */
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

/** Adds a webhook that has due deliveries, or that nodes must reload. */
export function noteLane(touched: Touched, teamId: string, webhookId: string): void {
  const { lanes } = touched;
  touched.deliveries = true;
  if (lanes === null) return;
  if (lanes.some((lane) => lane.webhookId === webhookId && lane.teamId === teamId)) return;
  touched.lanes = lanes.length < MAX_LANES ? [...lanes, { teamId, webhookId }] : null;
}

/** Maximum number of teams listed in `Touched.teams`. */
const MAX_TEAMS = 64;

/** Adds a team whose jobs may be due. */
export function noteTeam(touched: Touched, teamId: string): void {
  const { teams } = touched;
  touched.jobs = true;
  if (teams === null || teams.includes(teamId)) return;
  touched.teams = teams.length < MAX_TEAMS ? [...teams, teamId] : null;
}
