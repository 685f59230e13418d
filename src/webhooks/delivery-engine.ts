/**
 * Sends deliveries. Every webhook has a lane, a small queue of its own, so that a slow or dead endpoint delays only
 * itself.
 *
 *     a commit names lanes ──┐
 *     every 500 ms: which    ├─▶ load a page of each ──▶ pump: send within limits ──▶ settle
 *     lanes have something ──┘          ▲                     ▲                         │
 *     due?                              └─────── refill ──────┴── rest is over ─────────┘
 *
 * The table is the queue. Only memory knows which deliveries are in flight, so a crash needs no repair: unsettled
 * deliveries are still `waiting` in the table. Nothing is written before an attempt; an attempt and its consequences
 * are written in one transaction. `lane.ts` decides what one lane may send, `lane-slots.ts` what all lanes may send
 * together.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DueDelivery } from '../model/delivery.ts';
import type { LaneHealth } from '../model/lane.ts';
import type { TeamDispatchers } from '../net/dispatcher.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import type { Tracing } from '../observe/tracing.ts';
import { Poller } from '../std/chore.ts';
import type { Clock } from '../std/clock.ts';
import type { Sealer } from '../std/seal.ts';
import type { DueLane, LaneHolder, Takes } from '../store/operations/lanes.ts';
import type { Settlement } from '../store/operations/settle.ts';
import { quietMs } from '../store/quiet.ts';
import type { Store } from '../store/store.ts';
import type { LaneName, Touched } from '../store/transaction.ts';
import { Lane } from './lane.ts';
import { type AttemptDelivery, createAttemptDelivery } from './lane-attempt.ts';
import { LaneLeases } from './lane-leases.ts';
import { LaneRests } from './lane-rests.ts';
import { Slots } from './lane-slots.ts';
import { LanesForOthers } from './mail/lanes-for-others.ts';
import { type Mailing, NO_MAILING } from './mail/mailing.ts';
import { SettlementWriter } from './settlement-writer.ts';

const LOOK_EVERY_MS = 500;
/**
 * Maximum number of unsettled attempts. Beyond it, the store is slow or unavailable, and nothing more is sent. There is
 * room for two batches that are being written and for as many settlements that wait for them.
 */
const MAX_UNSETTLED = 1_024;
/**
 * Maximum number of characters of event bodies in the queues of all lanes. Beyond it, a lane loads only the deliveries
 * that it can send immediately.
 */
const MAX_QUEUED_CHARACTERS = 64 * 1024 * 1024;
const CONCURRENT_LOADS = 8;
/**
 * Maximum number of lanes that wait to be checked one by one after commits. For more lanes, one check of all lanes is
 * cheaper.
 */
const MAX_NAMED = 1_000;
/** How long requests in flight may continue after `stop`. Then they are aborted, and their deliveries stay due. */
const STOP_GRACE_MS = 2_000;
/**
 * How long a lane rests after an attempt that could not be settled, because its next attempt might not be settled
 * either.
 */
const UNSETTLED_REST_MS = 60_000;
/**
 * Maximum number of lanes kept in memory with the health of their endpoints. Beyond it, lanes with an empty queue are
 * discarded.
 */
const MAX_LANES = 10_000;

export class DeliveryEngine {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #elapsed: Clock;
  readonly #attempt: AttemptDelivery;
  readonly #settlements: SettlementWriter;
  readonly #poller: Poller;
  readonly #leases: LaneLeases;
  readonly #stopGraceMs: number;
  /** Undefined if this node has an SMTP server. */
  readonly #lanesForOthers: LanesForOthers | undefined;
  readonly #lanes = new Map<string, Lane>();
  /**
   * Lanes that can send, ordered so that the least recently served lane comes first. Lanes that await a response have a
   * set of their own, because they wait together while slots are scarce.
   */
  readonly #ready = new Set<Lane>();
  readonly #readyAgain = new Set<Lane>();
  readonly #slots = new Slots<Lane>();
  /** Running requests, loads and other work. */
  readonly #tasks = new Set<Promise<void>>();
  /** Lanes named by commits. */
  readonly #named = new Map<string, LaneName>();
  #followingHints: Promise<void> | undefined;
  /** Whether the last check of all lanes found due deliveries. */
  #foundDue = false;
  /**
   * Lanes that rest until a known time, because of a probe, `Retry-After`, a rate limit, or the next ordered delivery.
   */
  readonly #rests: LaneRests;
  #queuedCharacters = 0;
  #stopping = false;
  /** Number of attempts that `stop` aborted. */
  #cut = 0;
  #cutOff = new AbortController();
  #unwatch: (() => void) | undefined;

  /**
   * @param input.observer receives a report of each attempt
   * @param input.tracing undefined when tracing is off
   * @param input.elapsed a monotonic clock, in milliseconds
   */
  constructor(input: {
    store: Store;
    sealer: Sealer;
    dispatchers: TeamDispatchers;
    /** Default: this node cannot send mail. */
    mailing?: Mailing;
    log: Logger;
    observer: Observer;
    tracing?: Tracing | undefined;
    userAgent: string;
    nodeId: string;
    leaseMs?: number;
    random?: () => number;
    elapsed?: Clock;
    stopGraceMs?: number;
  }) {
    const { store, dispatchers } = input;
    this.#store = store;
    this.#log = input.log;
    this.#random = input.random ?? Math.random;
    this.#elapsed = input.elapsed ?? (() => performance.now());
    this.#stopGraceMs = input.stopGraceMs ?? STOP_GRACE_MS;
    const now = () => store.now();
    const { mailing = NO_MAILING } = input;
    this.#lanesForOthers = mailing.settings === null ? new LanesForOthers(this.#elapsed) : undefined;
    this.#attempt = createAttemptDelivery({
      store,
      sealer: input.sealer,
      now,
      dispatchers,
      mailing,
      userAgent: input.userAgent,
      observer: input.observer,
      tracing: input.tracing,
      random: this.#random,
      log: input.log,
    });
    this.#settlements = new SettlementWriter({
      deliveries: store.deliveries,
      log: input.log,
      random: this.#random,
      inFlight: () => this.#slots.quick,
      sharesCommit: () => store.sharesCommit(),
      elapsed: this.#elapsed,
      onSettled: (settlement) => this.#afterSettle(settlement),
      onGivenUp: (settlement) => this.#afterGivingUp(settlement),
    });
    this.#rests = new LaneRests({
      now,
      onOver: () => {
        this.#resumeRested();
        this.#pump();
      },
    });
    this.#poller = new Poller({
      everyMs: LOOK_EVERY_MS,
      random: this.#random,
      look: () => this.#look(),
      quietMs: () => this.#quietMs(),
    });
    this.#leases = new LaneLeases({
      deliveries: store.deliveries,
      nodeId: input.nodeId,
      leaseMs: input.leaseMs,
      log: input.log,
      random: this.#random,
      now,
      elapsed: this.#elapsed,
      lanes: () => this.#lanes.values(),
      onKept: (lane) => this.#pump(lane),
      onLost: (lane) => this.#drop(lane),
    });
  }

  start(): void {
    if (this.#stopping) this.#cutOff = new AbortController();
    this.#stopping = false;
    this.#unwatch ??= this.#store.watch((touched) => this.#noteTouched(touched));
    this.#rests.start();
    this.#leases.start();
    this.#poller.start();
  }

  /**
   * The number of lanes of this node by the state of their circuit breaker, of requests in flight, and of unsettled
   * attempts.
   */
  get load(): { circuits: Record<LaneHealth['state'], number>; inFlight: number; unsettled: number } {
    const circuits = { closed: 0, half_open: 0, open: 0 };
    for (const { health } of this.#lanes.values()) circuits[health.state] += 1;
    return { circuits, inFlight: this.#slots.size, unsettled: this.#settlements.size };
  }

  /**
   * Stops sending, waits up to `graceMs` for requests in flight, and settles their attempts. Requests that are still in
   * flight are then aborted; their deliveries stay due and are sent again after the next start, with the same
   * `webhook-id`.
   *
   * @returns the number of aborted requests
   */
  async stop({ graceMs = this.#stopGraceMs }: { graceMs?: number } = {}): Promise<{ cut: number }> {
    this.#stopping = true;
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#rests.stop();
    await this.#poller.stop();
    await this.#followingHints;
    this.#named.clear();
    await this.#leases.stop();
    for (const lane of this.#lanes.values()) this.#drop(lane);
    const grace = setTimeout(() => this.#cutOff.abort(), graceMs);
    // The loop is necessary because the end of an attempt may start another task, which pauses its webhook.
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
    clearTimeout(grace);
    await this.#settlements.close();
    await this.#leases.releaseAll();
    return { cut: this.#cut };
  }

  /** Checks all lanes once. Resolves when everything due has been sent and settled, except in lanes that rest. */
  async tick(): Promise<void> {
    await this.#leases.keep();
    await this.#look();
    while (this.#tasks.size > 0 || this.#settlements.size > 0) {
      await Promise.all(this.#tasks);
      await this.#settlements.idle();
    }
  }

  /** Schedules a check of all lanes, because something may be due. */
  nudge(): void {
    this.#poller.nudge();
  }

  async #quietMs(): Promise<number> {
    const isAtWork =
      this.#tasks.size > 0 || this.#settlements.size > 0 || this.#ready.size + this.#readyAgain.size > 0;
    // Deliveries of lanes that rest stay due, and asking the store costs more than the check that found them.
    return isAtWork || this.#foundDue ? 0 : quietMs(this.#store, this.#store.deliveries.nextDueAt);
  }

  #holder(): LaneHolder & Takes & { limit: number } {
    const others = this.#lanesForOthers;
    return {
      ...this.#leases.holder,
      ...(others === undefined ? {} : { mayTake: (lane) => others.mayTake(lane) }),
    };
  }

  #noteTouched({ deliveries, lanes }: Touched): void {
    if (!deliveries) return;
    this.#poller.wake();
    if (lanes === null || this.#named.size + lanes.length > MAX_NAMED) {
      this.nudge();
      return;
    }
    for (const name of lanes) this.#named.set(name.webhookId, name);
    this.#followingHints ??= this.#followHints().finally(() => {
      this.#followingHints = undefined;
    });
  }

  async #followHints(): Promise<void> {
    while (this.#named.size > 0 && !this.#stopping) {
      const some = [...this.#named.values()].slice(0, CONCURRENT_LOADS);
      for (const { webhookId } of some) this.#named.delete(webhookId);
      await Promise.all(some.map((name) => this.#lookAt(name)));
      await nextTurn();
    }
  }

  /** The fast path after a commit, which checks only a lane that the commit named. */
  async #lookAt(name: LaneName): Promise<void> {
    const known = this.#lanes.get(name.webhookId);
    const queuedBefore = known !== undefined && known.queued > 0;
    const askedMs = this.#elapsed();
    try {
      const due = await this.#store.deliveries.lane({ ...name, ...this.#holder() });
      if (due !== undefined) await this.#loadDue(due, askedMs);
      else if (queuedBefore) this.#drop(known);
    } catch (error) {
      // No delivery is lost, because the next check of all lanes includes this lane.
      this.#log.warn({ err: error, webhookId: name.webhookId }, 'delivery.look_failed');
    }
  }

  async #look(): Promise<void> {
    const askedMs = this.#elapsed();
    this.#resumeRested();
    const waitingBefore = [...this.#lanes.values()].filter((lane) => lane.queued > 0);
    const asked = new Set<string>();
    let due: DueLane[];
    try {
      due = await this.#store.deliveries.lanes({ ...this.#holder(), asked });
    } catch (error) {
      this.#log.warn({ err: error }, 'delivery.look_failed');
      return;
    }
    this.#foundDue = due.length > 0;
    const named = new Set(due.map((found) => found.webhookId));
    // The table too shows a lane with queued deliveries as due, unless the webhook was unsubscribed or paused after
    // they were loaded.
    for (const lane of waitingBefore) {
      if (asked.has(lane.due.teamId) && !named.has(lane.due.webhookId)) this.#drop(lane);
    }
    for (let from = 0; from < due.length && !this.#stopping; from += CONCURRENT_LOADS) {
      await Promise.all(
        due.slice(from, from + CONCURRENT_LOADS).map((found) => this.#loadDue(found, askedMs)),
      );
      // Reads of SQLite finish within one turn of the event loop, so loading thousands of lanes without a pause would
      // block it.
      await nextTurn();
    }
    this.#pump();
  }

  /** Loads a lane that the store reported as due. */
  async #loadDue(due: DueLane, askedMs: number): Promise<void> {
    // The lane may have been discarded and replaced after the store read `due`.
    const lane = this.#lanes.get(due.webhookId) ?? new Lane(due);
    this.#lanes.set(due.webhookId, lane);
    if (lane.isStale(askedMs)) return;
    // Another node held the lane after the queue was loaded, and may have sent deliveries that are still queued here.
    const changedHands = lane.due.epoch !== due.epoch;
    // An erasure has rewritten events since the queue was loaded.
    const isRewritten = lane.due.rewrites !== due.rewrites;
    // A user asked to send one delivery now, and this delivery may not be in the queue.
    const isRequested = lane.hasNewRequest(due);
    if (lane.ordered !== due.settings.ordered || changedHands || isRewritten || isRequested) this.#drop(lane);
    lane.update(due, askedMs);
    lane.mayHaveMore();
    await this.#load(lane);
  }

  /** Fills the queue of a lane unless the lane is resting. */
  async #load(lane: Lane): Promise<void> {
    const { teamId, webhookId } = lane.due;
    try {
      while (lane.restsUntil(this.#store.now()) <= this.#store.now() && !this.#stopping) {
        const fresh = await lane.load(this.#room(lane), (limits, held, first) =>
          this.#store.deliveries.load({ teamId, webhookId, limits, ordered: lane.ordered, held, first }),
        );
        for (const delivery of fresh ?? []) this.#queuedCharacters += delivery.body.length;
        if (fresh === undefined || !lane.missed) break;
        lane.mayHaveMore();
      }
    } catch (error) {
      this.#log.warn({ err: error, webhookId }, 'delivery.load_failed');
    }
    if (this.#stopping) this.#drop(lane);
    this.#forgetIfIdle(lane);
    this.#pump(lane);
  }

  /**
   * The maximum number of queued deliveries of each class. It is lower for a slow lane, because the queue of a lane is
   * dropped when the lane rests.
   */
  #room({ slow, health }: Lane): number {
    if (this.#queuedCharacters > MAX_QUEUED_CHARACTERS) return health.limit;
    return slow ? 4 * health.limit : Number.POSITIVE_INFINITY;
  }

  /** Resumes lanes whose rest is over. */
  #resumeRested(): void {
    for (const lane of this.#rests.over()) {
      if (lane.queued === 0) this.#track(this.#load(lane));
      else this.#consider(lane);
    }
  }

  /** Marks a lane as ready, or sets the timer for the end of its rest. */
  #consider(lane: Lane): void {
    // The lane was discarded before this call.
    if (this.#lanes.get(lane.due.webhookId) !== lane) return;
    const nowMs = this.#store.now();
    const at = lane.startsAt(nowMs);
    if (at <= nowMs && lane.queued > 0) {
      (lane.awaitsResponse ? this.#ready : this.#readyAgain).delete(lane);
      (lane.awaitsResponse ? this.#readyAgain : this.#ready).add(lane);
    } else {
      this.#unready(lane);
      if (at > nowMs && at < Number.POSITIVE_INFINITY) this.#rests.rest(lane, at);
    }
  }

  #unready(lane: Lane): void {
    this.#ready.delete(lane);
    this.#readyAgain.delete(lane);
  }

  /** Sends as much as the limits allow, one delivery of each ready lane in turn. */
  #pump(changed?: Lane): void {
    const nowMs = this.#store.now();
    for (const { holder } of this.#slots.age(this.#elapsed())) holder.hasAged();
    if (changed !== undefined) this.#consider(changed);
    // A lane that is sent to moves to the end of the second set, so each loop ends when the limits are reached.
    for (const lane of this.#ready) if (!this.#serve(lane, nowMs)) return;
    for (const lane of this.#readyAgain) if (this.#slots.isScarce || !this.#serve(lane, nowMs)) return;
  }

  /** Sends one delivery of a lane if the limits allow. Returns whether other lanes may send. */
  #serve(lane: Lane, nowMs: number): boolean {
    if (this.#stopping || this.#slots.isFull || this.#settlements.size >= MAX_UNSETTLED) return false;
    if (!this.#leases.trusts(lane)) this.#unready(lane);
    else if (this.#slots.admits({ teamId: lane.due.teamId, slow: lane.slow })) {
      this.#unready(lane);
      const delivery = lane.take(nowMs);
      if (delivery !== undefined) this.#launch(lane, delivery);
      this.#consider(lane);
    }
    return true;
  }

  #launch(lane: Lane, delivery: DueDelivery): void {
    this.#poller.wake();
    this.#queuedCharacters -= delivery.body.length;
    const { teamId } = lane.due;
    const { slow } = lane;
    const flight = this.#slots.begin({ holder: lane, teamId, slow, startedAt: this.#elapsed() });
    this.#track(
      this.#send(lane, delivery).finally(() => {
        this.#slots.end(flight);
        lane.requestEnded(flight.slow && !slow);
        this.#pump(lane);
      }),
    );
  }

  async #send(lane: Lane, delivery: DueDelivery): Promise<void> {
    const end = await this.#attempt(lane, delivery, this.#cutOff.signal);
    if (end === 'unsigned') return this.#drop(lane);
    if (end === 'cut') {
      this.#cut += 1;
      return;
    }
    this.#settlements.add(end.settlement, lane.ordered);
    if (end.drops) this.#drop(lane);
    if (end.pauses !== null) this.#track(this.#pauseWebhook(lane.due, end.pauses));
  }

  /** Pauses a webhook. Never rejects: if the store is unavailable, the next failed attempt pauses the webhook. */
  async #pauseWebhook({ teamId, webhookId: id }: LaneName, reason: string): Promise<void> {
    try {
      await this.#store.webhooks.pause({ teamId, id, reason });
    } catch (error) {
      this.#log.warn({ err: error, teamId, webhookId: id }, 'webhook.not_paused');
    }
  }

  #afterSettle({ webhookId, deliveryId, health }: Settlement): void {
    // The attempt may be followed by another one.
    this.#poller.wake();
    const lane = this.#lanes.get(webhookId);
    if (lane === undefined) return;
    lane.release(deliveryId);
    if (health !== null) lane.failingWritten(health === 'failing' ? this.#elapsed() : undefined);
    if (lane.wantsMore && !this.#stopping) this.#track(this.#load(lane));
    else this.#forgetIfIdle(lane);
    this.#pump(lane);
  }

  /** The result of the attempt was not written, so the delivery is still due and is sent again after the rest. */
  #afterGivingUp({ webhookId, deliveryId }: Settlement): void {
    const lane = this.#lanes.get(webhookId);
    if (lane === undefined) return;
    lane.postpone(deliveryId, this.#store.now() + UNSETTLED_REST_MS);
    this.#drop(lane);
  }

  #track(task: Promise<void>): void {
    const tracked = task.finally(() => this.#tasks.delete(tracked));
    this.#tasks.add(tracked);
  }

  #drop(lane: Lane): void {
    for (const delivery of lane.drop()) this.#queuedCharacters -= delivery.body.length;
    this.#unready(lane);
  }

  /**
   * If there are too many lanes, discards the least recently served lane with an empty queue, but never the lane that
   * was just served.
   */
  #forgetIfIdle(served: Lane): void {
    if (this.#lanes.size <= MAX_LANES || this.#lanes.get(served.due.webhookId) !== served) return;
    this.#lanes.delete(served.due.webhookId);
    this.#lanes.set(served.due.webhookId, served);
    for (const [id, lane] of this.#lanes) {
      if (lane === served || !lane.isEmpty) continue;
      this.#lanes.delete(id);
      this.#unready(lane);
      this.#rests.forget(lane);
      return;
    }
  }
}
