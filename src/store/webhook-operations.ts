/** Operations on events, webhooks and deliveries: part of the Store; `store.ts` says what all have in common. */

import type {
  Attempt,
  DeliveryClass,
  DeliveryOrigin,
  DeliveryState,
  DueDelivery,
  NextStep,
} from '../model/delivery.ts';
import type { EventType } from '../model/event.ts';
import type { Breaker } from '../model/lane.ts';
import type { Webhook, WebhookSettings } from '../model/webhook.ts';
import type { IdempotencyKey } from './idempotent-call.ts';
import type { Page } from './page.ts';

/** Names a lane: the queue of one webhook's deliveries. */
export interface LaneName {
  teamId: string;
  webhookId: string;
}

export interface StoredEvent {
  teamId: string;
  id: string;
  sequence: number;
  type: EventType;
  workflowId: string | null;
  jobId: string | null;
  body: string;
  createdAt: number;
}

/** Selects events of a team; times in epoch milliseconds, both inclusive. */
export interface EventFilter {
  teamId: string;
  workflowId?: string;
  /** Give the job's workflow as well, which the index needs. */
  jobId?: string;
  types?: readonly EventType[];
  since?: number;
  until?: number;
}

export interface EventPage {
  events: StoredEvent[];
  /** Pass as `before` for the next page; null after the last one. */
  next: string | null;
}

export interface EventOperations {
  /** A team's events after a sequence number, in order. Reading on from the last one never misses a late commit. */
  list(input: { teamId: string; afterSequence: number; limit: number }): Promise<StoredEvent[]>;
  get(input: { teamId: string; id: string }): Promise<StoredEvent | undefined>;
  /**
   * A page of events, newest first. It may be short or even empty and not be the last: filtering by type or job scans
   * a bounded number of events per call.
   */
  history(input: EventFilter & { before?: string; limit: number }): Promise<EventPage>;
  /** The newest event of a type among the team's last 1,000. */
  newestOfType(input: { teamId: string; type: EventType }): Promise<StoredEvent | undefined>;
  /** The sequence of the team's newest event; 0 before the first. */
  newestSequence(input: { teamId: string }): Promise<number>;
}

export interface WebhookOperations {
  /**
   * Subscribes a URL to events of a workflow, or of the whole team (null). If the same subscription (team, workflow,
   * URL, set of events) exists, it is returned, resumed if it was paused. `secret` (sealed) is used only for a new one.
   */
  subscribe(input: {
    teamId: string;
    workflowId: string | null;
    url: string;
    events: readonly string[];
    secret: string;
    /** How many active webhooks one workflow may have. */
    limit: number;
    /** Used only for a new one; by default `DEFAULT_WEBHOOK_SETTINGS`. */
    settings?: WebhookSettings;
  }): Promise<
    | { outcome: 'created' | 'existing'; webhook: Webhook; resumed?: true }
    | { outcome: 'workflow_not_found' }
    | { outcome: 'limit_reached' }
  >;
  /** A page of a team's webhooks, by id: all, or those of one workflow, or with exactly this URL. */
  list(input: { teamId: string; workflowId?: string; url?: string } & Page): Promise<Webhook[]>;
  get(input: { teamId: string; id: string }): Promise<Webhook | undefined>;
  /**
   * Removes webhooks: nothing more is sent to them, and their waiting deliveries are canceled, a large backlog in the
   * background. Returns how many it removed.
   */
  unsubscribe(input: { teamId: string; ids: readonly string[] }): Promise<number>;
  /**
   * Deletes the rows (and secrets) of webhooks that were removed more than `olderMs` ago and have no deliveries left.
   * Looks at up to `limit` of them per call; call until `done`.
   */
  prune(input: { olderMs: number; limit: number }): Promise<{ pruned: number; done: boolean }>;
  /** What only its sender may open: its secret, and its own headers as JSON, null if it has none. */
  sealed(input: {
    teamId: string;
    id: string;
  }): Promise<{ secret: string; headers: string | null } | undefined>;
  /**
   * Replaces the secret; messages are signed with the previous one as well for `overlapMs` (0: at once no longer).
   * On a second rotation within an overlap the oldest secret stays valid, because receivers may not know the second.
   */
  rotate(input: {
    teamId: string;
    id: string;
    secret: string;
    overlapMs: number;
  }): Promise<Webhook | undefined>;
  /** Changes settings or headers; what is not given stays. `headers` is sealed JSON; null removes them. */
  change(input: {
    /** Compare-and-set: unless both still have these values, nothing changes and the result is undefined. */
    expected?: { settings: WebhookSettings; headers: string | null };
    teamId: string;
    id: string;
    settings?: Partial<WebhookSettings>;
    headers?: string | null;
  }): Promise<Webhook | undefined>;
  /**
   * Pauses it: its deliveries wait, until `deliveries.expire` gives them up. Event, unless it was paused already:
   * `webhook_paused`, to the other webhooks subscribed to the workflow or the team.
   */
  pause(input: { teamId: string; id: string; reason: string }): Promise<Webhook | undefined>;
  /** Ends the pause and clears `failingSince` and `breaker`. */
  resume(input: { teamId: string; id: string }): Promise<Webhook | undefined>;
  /**
   * Creates an event `webhook_test` for this webhook alone, whatever it is subscribed to. A paused webhook gets it
   * when it is resumed. Repeating an idempotency key within 24 h returns what the first call made.
   */
  test(input: {
    teamId: string;
    id: string;
    idempotencyKey?: IdempotencyKey;
  }): Promise<{ eventId: string; deliveryId: string } | undefined>;
}

/** The node that sends, and for how long it leases a lane. */
export interface LaneHolder {
  nodeId: string;
  leaseMs: number;
}

/**
 * A lane that a node has leased. `epoch` grows with each change of holder, and fences off what an earlier one
 * reports.
 */
export interface HeldLane extends LaneName {
  epoch: number;
}

/** A lane with due deliveries, and everything needed to send them. */
export interface DueLane extends HeldLane {
  url: string;
  /** Sealed: the current one, then the previous one while it is valid. */
  secrets: string[];
  /** Sealed JSON. */
  headers: string | null;
  settings: WebhookSettings;
  failingSince: number | null;
  breaker: Breaker | null;
  /** How often erasures have rewritten events of its team: bodies loaded at a lower count must not be sent. */
  rewrites: number;
  /** The last time that somebody asked to send one of its deliveries at once, and which: a rest that began earlier ends. */
  asked: { at: number; deliveryId: string } | null;
}

/** Selects deliveries of a webhook. Times are of creation, in epoch milliseconds, both inclusive. */
export interface DeliveryFilter {
  teamId: string;
  webhookId: string;
  states?: readonly DeliveryState[];
  since?: number;
  until?: number;
}

export interface DeliverySummary {
  id: string;
  webhookId: string;
  eventId: string;
  eventType: EventType;
  origin: DeliveryOrigin;
  state: DeliveryState;
  attempt: number;
  nextAt: number | null;
  createdAt: number;
  /** The last attempt, without the response. */
  last: { outcome: Attempt['outcome']; status: number | null; error: string | null; at: number } | null;
}

/** A replay of selected deliveries, carried out in steps in the background. */
export interface Replay {
  teamId: string;
  id: string;
  webhookId: string;
  states: DeliveryState[];
  since: number;
  until: number;
  /** Deliveries that it has sent so far: new ones, and those still waiting that it made due. */
  made: number;
  /** `done` when it has gone through the whole selection; what it has sent may still be under way. */
  state: 'running' | 'done';
  createdAt: number;
}

/** A position among the deliveries of a webhook, oldest first. */
export interface HistoryPlace {
  createdAt: number;
  id: string;
}

/** How a delivery that a replay has sent stands. */
export interface ReplayedDelivery {
  sequence: number;
  state: DeliveryState;
  /** Its last attempt; null before the first, and when that is no longer kept. */
  last: DeliverySummary['last'];
}

export interface DeliveryOperations {
  /**
   * The lanes with due deliveries that this node holds, plus up to `limit` free ones that it leases now; each remains
   * leased for at least two thirds of `leaseMs`. A delivery dated further ahead than any can wait was dated before the
   * clock was set back, and counts as due. The cost grows with the number of webhooks, not with the backlog.
   */
  lanes(input: LaneHolder & { limit: number }): Promise<DueLane[]>;
  /** The same for one lane; undefined if nothing is due, it is paused or removed, or another node holds it. */
  lane(input: LaneName & LaneHolder): Promise<DueLane | undefined>;
  /**
   * Renews leases. Returns the lanes that the node no longer holds (`lost`), and those whose rows were locked, so that
   * they are neither renewed nor lost (`late`).
   */
  keepLanes(
    input: LaneHolder & { lanes: readonly HeldLane[] },
  ): Promise<{ lost: HeldLane[]; late: HeldLane[] }>;
  /** Gives up leases, so that any node may take the lanes at once. */
  releaseLanes(input: { nodeId: string; lanes: readonly HeldLane[] }): Promise<void>;
  /**
   * Due deliveries of one active webhook, longest due first, up to a limit per class. With `ordered`: its waiting
   * deliveries in the order of their events, due or not, up to `limits.live`. Those in `held` count towards the limits
   * and may be left out of the result. `first` is in the result if it is due, whatever the limits; not with `ordered`.
   */
  load(
    input: LaneName & {
      limits: Record<DeliveryClass, number>;
      ordered: boolean;
      held?: { has(id: string): boolean };
      first?: string | undefined;
    },
  ): Promise<DueDelivery[]>;
  /**
   * Stores the outcomes of attempts, all in one transaction. A success always counts; anything else only if the
   * delivery has had exactly `attempt - 1` attempts and the lane still has this `epoch`.
   */
  settle(input: { settlements: readonly Settlement[] }): Promise<void>;
  /**
   * When the first waiting delivery of a webhook is or was due; of an ordered one, the first by sequence. Null when none
   * waits.
   */
  firstDueAt(input: LaneName): Promise<number | null>;
  /** A delivery with its event's body, and its attempts, oldest first. */
  get(input: {
    teamId: string;
    id: string;
  }): Promise<(DeliverySummary & { body: string; attempts: Attempt[] }) | undefined>;
  /** Deliveries of one webhook, newest first, from before the delivery `before`. */
  list(input: DeliveryFilter & { before?: string; limit: number }): Promise<DeliverySummary[]>;
  /** Deliveries of one event to any webhook, newest first, from before the delivery `before`. */
  ofEvent(input: {
    teamId: string;
    sequence: number;
    before?: string;
    limit: number;
  }): Promise<DeliverySummary[]>;
  /**
   * Sends the events of these deliveries once more, and returns the deliveries that do so in the same order: the one
   * that still waits for the event, which is due at once, or else a new one (origin `replay`). Of an ordered webhook, what waits before that is due as well. All or none: undefined if one does not exist, its webhook is
   * removed, or it is not of `webhookId`. An idempotency key is scoped to `webhookId` or, without that, to the ids.
   */
  replay(input: {
    teamId: string;
    webhookId?: string;
    ids: readonly string[];
    idempotencyKey?: IdempotencyKey;
  }): Promise<SentAgain[] | undefined>;
  /**
   * A part of what a replay of this selection would send now, and in which state each is; an event may occur again in
   * a later part. `next` is null after the last part.
   */
  replayable(
    input: DeliveryFilter & { states: readonly DeliveryState[]; after?: HistoryPlace; limit: number },
  ): Promise<{ found: { sequence: number; state: DeliveryState }[]; next: HistoryPlace | null }>;
  /**
   * Starts a replay of a selection: each event once, however many of its deliveries are selected, as `chooseReplay`
   * decides. While it runs, an ordered webhook is sent nothing, so that all events come in their order.
   */
  startReplay(
    input: DeliveryFilter & { states: readonly DeliveryState[]; idempotencyKey?: IdempotencyKey },
  ): Promise<Replay | undefined>;
  getReplay(input: { teamId: string; id: string }): Promise<Replay | undefined>;
  /** What a replay has sent, in the order of the events behind the sequence `after`; not what a later one sends again. */
  replayed(input: { teamId: string; id: string; after: number; limit: number }): Promise<ReplayedDelivery[]>;
  /**
   * Advances running replays by up to `limit` deliveries, but none of webhooks for which `waiting` replayed ones are due
   * already, unless they are ordered. Call until `done`, and again periodically; each call continues with the next
   * webhooks.
   */
  stepReplays(input: { limit: number; waiting: number }): Promise<{ done: boolean }>;
  /**
   * Marks deliveries as dead that still wait more than `olderMs` after they were created, also those of paused
   * webhooks. One that has never been sent to an active webhook is kept for its first attempt, however old. At most
   * `limit` per call; call until `done`.
   */
  expire(input: { olderMs: number; limit: number }): Promise<{ done: boolean }>;
  /**
   * Deletes attempts older than `attemptsMs`, and events older than `eventsMs` with all their deliveries. Events with
   * a waiting delivery stay, as does the newest event of each team. Some `limit` rows of each per call; call until
   * `done`.
   */
  prune(input: { attemptsMs: number; eventsMs: number; limit: number }): Promise<{ done: boolean }>;
}

/** The delivery that sends an event once more. */
export interface SentAgain {
  id: string;
  /** Whether it was made for that: nothing waited for the event. */
  isNew: boolean;
  /** How many attempts it had had by then. */
  attempt: number;
}

/** The outcome of one attempt of a delivery. */
export interface Settlement {
  teamId: string;
  deliveryId: string;
  webhookId: string;
  epoch: number;
  attempt: number;
  /** `DueDelivery.rewrites`: if events of the team were rewritten since, the endpoint's response is not stored. */
  rewrites: number;
  log: Attempt;
  next: NextStep;
  /** Whether the attempt changes what is known of the endpoint: it started to fail, or works. */
  health: 'failing' | 'well' | null;
  /** What to write down of its circuit breaker; undefined: it is as it was. */
  breaker?: Breaker | null | undefined;
}
