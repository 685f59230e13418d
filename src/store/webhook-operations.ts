/** What can happen to events, webhooks and deliveries: a part of the Store, see `store.ts` for what holds of all operations. */
import type {
  Attempt,
  DeliveryClass,
  DeliveryOrigin,
  DeliveryState,
  DueDelivery,
  NextStep,
} from '../model/delivery.ts';
import type { EventType } from '../model/event.ts';
import type { Webhook, WebhookSettings } from '../model/webhook.ts';

/** A webhook, by the names that find its lane. */
export interface LaneName {
  teamId: string;
  webhookId: string;
}

/** An event as it is stored. */
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

/** Which events of a team; times in epoch milliseconds, both included. */
export interface EventFilter {
  teamId: string;
  workflowId?: string;
  /** Give the workflow of the job as well. */
  jobId?: string;
  types?: readonly EventType[];
  since?: number;
  until?: number;
}

export interface EventPage {
  events: StoredEvent[];
  next: string | null;
}

export interface EventOperations {
  /** A team's events after a sequence, in order. A cursor over it never skips a late commit. */
  list(input: { teamId: string; afterSequence: number; limit: number }): Promise<StoredEvent[]>;
  get(input: { teamId: string; id: string }): Promise<StoredEvent | undefined>;
  /**
   * What happened, newest first: a page, and the id to go on before, null when there is no more. A page may be short,
   * or empty, and have a next one all the same: of what is looked for by type or job a bounded number is looked
   * through at once.
   */
  history(input: EventFilter & { before?: string; limit: number }): Promise<EventPage>;
  /** The newest event of a type among the last 1,000 of the team, if there is one. */
  latest(input: { teamId: string; type: EventType }): Promise<StoredEvent | undefined>;
  /** The sequence of the team's newest event; 0 before the first. */
  newest(input: { teamId: string }): Promise<number>;
}

export interface WebhookOperations {
  /**
   * Subscribes, unless the same team, workflow, URL and set of events is there already: that one is answered,
   * resumed if it was paused. Without a workflow (null) it hears of all of the team's. `secret` (sealed) is used
   * only for a new one.
   */
  subscribe(input: {
    teamId: string;
    workflowId: string | null;
    url: string;
    events: readonly string[];
    secret: string;
    /** Active webhooks that one workflow may have. */
    limit: number;
    /** Counts only for a new one; the defaults unless told. */
    settings?: WebhookSettings;
  }): Promise<
    | { outcome: 'created' | 'existing'; webhook: Webhook; resumed?: true }
    | { outcome: 'workflow_not_found' }
    | { outcome: 'limit_reached' }
  >;
  /** A team's webhooks, or those of one workflow; oldest first. */
  list(input: { teamId: string; workflowId?: string }): Promise<Webhook[]>;
  get(input: { teamId: string; id: string }): Promise<Webhook | undefined>;
  /** Webhooks with exactly this URL; oldest first. */
  byUrl(input: { teamId: string; url: string; workflowId?: string }): Promise<Webhook[]>;
  /**
   * Removes webhooks: nothing is loaded for them any more, and what waits for them is canceled, a large backlog
   * after the answer. Answers how many it removed.
   */
  unsubscribe(input: { teamId: string; ids: readonly string[] }): Promise<number>;
  /**
   * Forgets webhooks that were removed longer ago than `olderMs` and have no delivery left, with their secrets, and
   * answers how many. Looks at `limit` of them a call at most, to be called until done.
   */
  forget(input: { olderMs: number; limit: number }): Promise<{ forgotten: number; done: boolean }>;
  /** The webhook's secret, sealed. */
  secret(input: { teamId: string; id: string }): Promise<string | undefined>;
  /** The webhook's own headers as sealed JSON; null when it has none. */
  headers(input: { teamId: string; id: string }): Promise<string | null | undefined>;
  /**
   * Gives it a new secret; the one before signs along until `overlapMs` are over. When one signs along already, that
   * one goes on, for nobody may have seen the one between. Without an overlap none does.
   */
  rotate(input: {
    teamId: string;
    id: string;
    secret: string;
    overlapMs: number;
  }): Promise<Webhook | undefined>;
  /** Changes how it is called; what is not named stays. `headers` are sealed JSON, null takes them away. */
  change(input: {
    /** Nothing is changed, and nothing answered, unless both are still these. */
    expected?: { settings: WebhookSettings; headers: string | null };
    teamId: string;
    id: string;
    settings?: Partial<WebhookSettings>;
    headers?: string | null;
  }): Promise<Webhook | undefined>;
  /**
   * Pauses it: what is due waits, though not longer than `expire` lets it. Event, unless it was paused already:
   * `webhook_paused`, to the other webhooks that hear of its workflow, or of the team.
   */
  pause(input: { teamId: string; id: string; reason: string }): Promise<Webhook | undefined>;
  /** Ends the pause and forgets since when it has failed. */
  resume(input: { teamId: string; id: string }): Promise<Webhook | undefined>;
  /**
   * Makes an event `webhook_test` for this webhook alone, whatever it has subscribed. To a paused one it is sent
   * when it is resumed, as all else. A key that was used for this webhook within 24 h answers what the first call made.
   */
  test(input: {
    teamId: string;
    id: string;
    idempotencyKey?: string | null;
  }): Promise<{ eventId: string; deliveryId: string } | undefined>;
}

/** Who sends, and for how long a lane that it takes is its alone unless it keeps it. */
export interface LaneHolder {
  nodeId: string;
  leaseMs: number;
}

/** A lane that a node holds. The epoch grows whenever it comes to another one: what an earlier holder says is stale. */
export interface HeldLane extends LaneName {
  epoch: number;
}

/** One webhook that has due deliveries, with all that sending to it needs. */
export interface DueLane extends HeldLane {
  url: string;
  /** Sealed; the newest first, then the one before it while that still signs along. */
  secrets: string[];
  /** Sealed JSON. */
  headers: string | null;
  settings: WebhookSettings;
  failingSince: number | null;
  /** How often events of its team have been rewritten by erasures: what was loaded before is not to be sent. */
  rewrites: number;
}

/** Which deliveries of a webhook. Times are those of their making, in epoch milliseconds. */
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
  /** The last attempt, without what came back. */
  last: { outcome: Attempt['outcome']; status: number | null; error: string | null; at: number } | null;
}

/** A replay of a selection, which goes on by itself until it has come to its end. */
export interface Replay {
  teamId: string;
  id: string;
  webhookId: string;
  states: DeliveryState[];
  since: number;
  until: number;
  /** Deliveries made so far. */
  made: number;
  state: 'running' | 'done';
  createdAt: number;
}

export interface DeliveryOperations {
  /**
   * The webhooks that have deliveries due and that this node holds, or takes now: at most `limit` of those that
   * nobody holds; each is its own for two thirds of `leaseMs` at least. What is dated further ahead than any delivery waits was dated before the clock was set back, and is
   * due. Costs what the number of webhooks costs, not the backlog.
   */
  lanes(input: LaneHolder & { limit: number }): Promise<DueLane[]>;
  /** One of them; nothing when it has nothing due, is paused, is gone, or another node holds it. */
  lane(input: LaneName & LaneHolder): Promise<DueLane | undefined>;
  /**
   * Renews the leases of lanes. Answers those that the node does not hold any more, and those that somebody has locked
   * at this moment: these are neither renewed nor lost.
   */
  keepLanes(
    input: LaneHolder & { lanes: readonly HeldLane[] },
  ): Promise<{ lost: HeldLane[]; late: HeldLane[] }>;
  /** Gives lanes back, so that any node may take them at once. */
  releaseLanes(input: { nodeId: string; lanes: readonly HeldLane[] }): Promise<void>;
  /**
   * Due deliveries of one active webhook, at most so many of each class, those due longest first. With `ordered` its
   * waiting deliveries in the order of their events, whether they are due or not, at most `live` of them. Those that
   * are `held` count among them, and may be left out of the answer.
   */
  load(
    input: LaneName & {
      limits: Record<DeliveryClass, number>;
      ordered: boolean;
      held?: { has(id: string): boolean };
    },
  ): Promise<DueDelivery[]>;
  /**
   * Writes down attempts and what follows from them, all in one transaction. `attempt` counts this attempt and
   * is its fence: a success is always taken, anything else only if the row has seen one attempt less and nobody
   * else has taken the lane since `epoch`.
   */
  settle(input: { settlements: readonly Settlement[] }): Promise<void>;
  /** A delivery with the body of its event and its attempts, oldest first. */
  get(input: {
    teamId: string;
    id: string;
  }): Promise<(DeliverySummary & { body: string; attempts: Attempt[] }) | undefined>;
  /** Deliveries of one webhook, newest first, those made before one. */
  list(input: DeliveryFilter & { before?: string; limit: number }): Promise<DeliverySummary[]>;
  /** Deliveries of one event to whichever webhooks, newest first, those made before one. */
  ofEvent(input: {
    teamId: string;
    sequence: number;
    before?: string;
    limit: number;
  }): Promise<DeliverySummary[]>;
  /**
   * Makes a new delivery of the same event to the same webhook (origin `replay`) for each of these; answers their
   * ids in the same order. All of them or none: nothing when one is not there or its webhook is gone, or is another
   * one than `webhookId`. Keys are remembered for the webhook, or without one for these ids.
   */
  replay(input: {
    teamId: string;
    webhookId?: string;
    ids: readonly string[];
    idempotencyKey?: string | null;
  }): Promise<string[] | undefined>;
  /**
   * Begins a replay of a selection: each event once, however many of its deliveries are selected. What failed is left
   * out when a delivery of its event that was made since has arrived, or waits.
   */
  startReplay(
    input: DeliveryFilter & { states: readonly DeliveryState[]; idempotencyKey?: string | null },
  ): Promise<Replay | undefined>;
  getReplay(input: { teamId: string; id: string }): Promise<Replay | undefined>;
  /**
   * Takes running replays a little further: at most `limit` new deliveries, and none for a webhook for which
   * `waiting` replayed ones wait already. To be called until done, and now and then; each call goes on with the
   * webhooks behind those of the one before.
   */
  stepReplays(input: { limit: number; waiting: number }): Promise<{ done: boolean }>;
  /**
   * Gives up deliveries that were made longer ago than `olderMs` and still wait, also those of paused webhooks: they
   * are dead. What was never sent to a webhook that is active waits for its first attempt, however old it is. At most
   * `limit` a call, to be called until done.
   */
  expire(input: { olderMs: number; limit: number }): Promise<{ done: boolean }>;
  /**
   * Deletes attempts older than `attemptsMs`, and events older than `eventsMs` with their deliveries, whatever the
   * age of those. An event that still has a delivery waiting stays, and the newest of each team. At most some
   * `limit` rows of each a call, to be called until done.
   */
  prune(input: { attemptsMs: number; eventsMs: number; limit: number }): Promise<{ done: boolean }>;
}

export interface Settlement {
  teamId: string;
  deliveryId: string;
  webhookId: string;
  epoch: number;
  attempt: number;
  /** That of the delivery: when there has been a rewriting since, what the endpoint answered is not kept. */
  rewrites: number;
  log: Attempt;
  next: NextStep;
  /** What the attempt says of the endpoint, where that is news: it fails since then, or it is well. */
  health: 'failing' | 'well' | null;
}
