/**
 * Lanes: every webhook has a small queue of its own, so that a slow or dead endpoint delays only itself.
 *
 *     a commit names lanes ──┐
 *     every 500 ms: which    ├─▶ load a page of each ──▶ pump: send within bounds ──▶ settle
 *     lanes have something ──┘          ▲                     ▲                         │
 *     due?                              └──── refill, go on ──┴──── rested: go on ──────┘
 *
 * The table is the queue. Being in flight is kept in memory only, so a crash needs no repair: what was not
 * settled is still waiting there. Nothing is written before an attempt; an attempt and what follows from it are
 * written in one transaction. What one lane may do is in `lane.ts`, what all may do together in `lane-slots.ts`.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { DueDelivery } from '../model/delivery.ts';
import type { LaneHealth } from '../model/lane.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import type { Tracing } from '../observe/tracing.ts';
import type { Clock } from '../std/clock.ts';
import type { Sealer } from '../std/seal.ts';
import { Wake } from '../std/wake.ts';
import type { Store, Touched } from '../store/store.ts';
import type { DueLane, LaneName, Settlement } from '../store/webhook-operations.ts';
import { Lane } from './lane.ts';
import { LaneAlarm } from './lane-alarm.ts';
import { createAttempting } from './lane-attempt.ts';
import { createFlying, type Flying } from './lane-flight.ts';
import { LaneLeases } from './lane-leases.ts';
import { LaneNews } from './lane-news.ts';
import { Slots } from './lane-slots.ts';
import { noteUnsettled, pauseWebhook } from './lane-trouble.ts';
import { Settler } from './settler.ts';
import { Signer } from './signer.ts';

const LOOK_EVERY_MS = 500;
/** With this many attempts not yet written down the store is slow or away, and nothing more is sent. */
const MAX_UNSETTLED = 512;
/** Characters of bodies in all queues; beyond it a lane loads only what it can send at once. */
const MAX_QUEUED_CHARACTERS = 64 * 1024 * 1024;
const LOADS_AT_ONCE = 8;
/** What is in flight at a stop may take this long; then it is cut off and stays due. */
const STOP_GRACE_MS = 2_000;
/** Lanes without anything in memory that are remembered, for what is known of their endpoints. */
const MAX_REMEMBERED = 10_000;

export class Lanes {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #elapsed: Clock;
  readonly #fly: Flying;
  readonly #signer = new Signer();
  readonly #settler: Settler;
  readonly #wake: Wake;
  readonly #alarm: LaneAlarm;
  readonly #leases: LaneLeases;
  readonly #stopGraceMs: number;
  readonly #lanes = new Map<string, Lane>();
  /** Lanes that can send; the one that was served last stands last. */
  readonly #ready = new Set<Lane>();
  readonly #slots = new Slots<Lane>();
  /** Requests, loads and whatever else is under way. */
  readonly #tasks = new Set<Promise<void>>();
  readonly #news = new LaneNews((name) => this.#lookAt(name));
  #queuedCharacters = 0;
  #stopping = false;
  /** Attempts that were cut off by a stop. */
  #cut = 0;
  #cutOff = new AbortController();
  #unwatch: (() => void) | undefined;

  /** @param input.elapsed milliseconds by a clock that is never set back */
  constructor(input: {
    store: Store;
    sealer: Sealer;
    dispatcher: Dispatcher;
    log: Logger;
    /** Told of each attempt. */
    observer: Observer;
    /** Nothing where nothing is traced. */
    tracing?: Tracing | undefined;
    userAgent: string;
    nodeId: string;
    leaseMs?: number;
    random?: () => number;
    elapsed?: Clock;
    stopGraceMs?: number;
  }) {
    const { store, sealer, dispatcher, userAgent } = input;
    this.#store = store;
    this.#log = input.log;
    this.#random = input.random ?? Math.random;
    this.#elapsed = input.elapsed ?? (() => performance.now());
    this.#stopGraceMs = input.stopGraceMs ?? STOP_GRACE_MS;
    const now = () => store.now();
    const sign = this.#signer.sign.bind(this.#signer);
    const attempt = createAttempting({ store, sealer, userAgent, sender: { dispatcher, now, sign } });
    const { observer, tracing, log } = input;
    this.#fly = createFlying({ attempt, observer, tracing, now, random: this.#random, log });
    this.#settler = new Settler({
      deliveries: store.deliveries,
      log: input.log,
      random: this.#random,
      onSettled: (settlement) => this.#afterSettle(settlement),
      onGivenUp: (settlement) => this.#afterGivingUp(settlement),
    });
    this.#wake = new Wake({ everyMs: LOOK_EVERY_MS, random: this.#random, look: () => this.#look() });
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
    this.#alarm = new LaneAlarm(now, () => {
      this.#goOn();
      this.#pump();
    });
  }

  start(): void {
    if (this.#stopping) this.#cutOff = new AbortController();
    this.#stopping = false;
    this.#unwatch ??= this.#store.watch((touched) => this.#noteTouched(touched));
    this.#news.start();
    this.#alarm.start();
    this.#leases.start();
    this.#wake.start();
  }

  /** How many endpoints are left alone for now, because they were out of order: those of this node. */
  get openCircuits(): number {
    return [...this.#lanes.values()].filter(({ health }) => health.state === 'open').length;
  }

  /** What this node has to do with endpoints now: lanes by the state of their circuit, requests, attempts to write down. */
  get load(): { circuits: Record<LaneHealth['state'], number>; inFlight: number; unsettled: number } {
    const circuits = { closed: 0, half_open: 0, open: 0 };
    for (const { health } of this.#lanes.values()) circuits[health.state] += 1;
    return { circuits, inFlight: this.#slots.size, unsettled: this.#settler.size };
  }

  /**
   * Sends nothing more, waits a little for what is in flight, and writes down what came of it. What is cut off
   * then stays due and is sent again after the next start, with the same `webhook-id`.
   *
   * @returns how many were cut off
   */
  async stop({ graceMs = this.#stopGraceMs }: { graceMs?: number } = {}): Promise<{ cut: number }> {
    this.#stopping = true;
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#alarm.stop();
    await this.#wake.stop();
    await this.#news.stop();
    await this.#leases.stop();
    for (const lane of this.#lanes.values()) this.#drop(lane);
    const grace = setTimeout(() => this.#cutOff.abort(), graceMs);
    await Promise.all(this.#tasks);
    clearTimeout(grace);
    await this.#signer.close();
    await this.#settler.close();
    await this.#leases.releaseAll();
    return { cut: this.#cut };
  }

  /** Looks once at what is due; resolves when all of it is sent and settled, but for what rests. */
  async tick(): Promise<void> {
    await this.#leases.keep();
    await this.#look();
    while (this.#tasks.size > 0 || this.#settler.size > 0) {
      await Promise.all(this.#tasks);
      await this.#settler.idle();
    }
  }

  /** Something may be due: look soon. */
  nudge(): void {
    this.#wake.nudge();
  }

  #noteTouched({ deliveries, lanes }: Touched): void {
    if (deliveries && (lanes === null || !this.#news.add(lanes))) this.nudge();
  }

  /** The quick way after a commit: asks only for a lane that it named. */
  async #lookAt(name: LaneName): Promise<void> {
    const known = this.#lanes.get(name.webhookId);
    const queuedBefore = known !== undefined && known.queued > 0;
    const askedMs = this.#elapsed();
    try {
      const due = await this.#store.deliveries.lane({ ...name, ...this.#leases.holder });
      if (due !== undefined) await this.#found(due, askedMs);
      else if (queuedBefore) this.#drop(known);
    } catch (error) {
      // The next look finds it.
      this.#log.warn({ err: error, webhookId: name.webhookId }, 'delivery.look_failed');
    }
  }

  async #look(): Promise<void> {
    const askedMs = this.#elapsed();
    this.#goOn();
    const waitingBefore = [...this.#lanes.values()].filter((lane) => lane.queued > 0);
    let due: DueLane[];
    try {
      due = await this.#store.deliveries.lanes(this.#leases.holder);
    } catch (error) {
      this.#log.warn({ err: error }, 'delivery.look_failed');
      return;
    }
    const named = new Set(due.map((found) => found.webhookId));
    // What is queued is due in the table, unless the webhook was unsubscribed or paused meanwhile.
    for (const lane of waitingBefore) {
      if (!named.has(lane.due.webhookId)) this.#drop(lane);
    }
    for (let from = 0; from < due.length && !this.#stopping; from += LOADS_AT_ONCE) {
      await Promise.all(due.slice(from, from + LOADS_AT_ONCE).map((found) => this.#found(found, askedMs)));
      // Reads of an embedded database end within this turn: thousands of lanes must not take the loop for themselves.
      await nextTurn();
    }
    this.#pump();
  }

  /** The store says that something is due in a lane. */
  async #found(due: DueLane, askedMs: number): Promise<void> {
    // It is looked up here: another one may be in its place since `due` was read.
    const lane = this.#lanes.get(due.webhookId) ?? new Lane(due);
    this.#lanes.set(due.webhookId, lane);
    if (askedMs < lane.goneAtMs) return;
    // What was queued when it was another's in between may have been sent by that one.
    const isAnothers = lane.due.epoch !== due.epoch;
    // Nor may anything be sent that an erasure has taken out of its event since.
    const isRewritten = lane.due.rewrites !== due.rewrites;
    if (lane.ordered !== due.settings.ordered || isAnothers || isRewritten) this.#drop(lane);
    lane.name(due, askedMs);
    lane.mayHaveMore();
    await this.#load(lane);
  }

  /** Fills a lane up, unless it rests. */
  async #load(lane: Lane): Promise<void> {
    const { teamId, webhookId } = lane.due;
    try {
      while (lane.restsUntil(this.#store.now()) <= this.#store.now() && !this.#stopping) {
        const fresh = await lane.load(this.#room(lane), (limits, held) =>
          this.#store.deliveries.load({ teamId, webhookId, limits, ordered: lane.ordered, held }),
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

  /** How many deliveries of a class a lane may queue: one that fails may soon have to give them back. */
  #room({ slow, health }: Lane): number {
    if (this.#queuedCharacters > MAX_QUEUED_CHARACTERS) return health.limit;
    return slow ? 4 * health.limit : Number.POSITIVE_INFINITY;
  }

  /** Takes up the lanes that have rested. */
  #goOn(): void {
    for (const lane of this.#alarm.due()) {
      if (lane.queued === 0) this.#do(this.#load(lane));
      else this.#consider(lane);
    }
  }

  #consider(lane: Lane): void {
    // Forgotten meanwhile: another one is in its place, or will be.
    if (this.#lanes.get(lane.due.webhookId) !== lane) return;
    const nowMs = this.#store.now();
    const at = lane.startsAt(nowMs);
    if (at <= nowMs && lane.queued > 0) this.#ready.add(lane);
    else {
      this.#ready.delete(lane);
      if (at > nowMs && at < Number.POSITIVE_INFINITY) this.#alarm.set(lane, at);
    }
  }

  /** Sends as much as the bounds allow, one delivery of each lane in turn. */
  #pump(changed?: Lane): void {
    const nowMs = this.#store.now();
    for (const { holder } of this.#slots.age(this.#elapsed())) holder.aged += 1;
    if (changed !== undefined) this.#consider(changed);
    for (const lane of this.#ready) {
      if (this.#stopping || this.#slots.isFull || this.#settler.size >= MAX_UNSETTLED) return;
      if (this.#slots.isScarce && lane.awaits) continue;
      if (!this.#leases.trusts(lane)) {
        this.#ready.delete(lane);
        continue;
      }
      if (!this.#slots.admits({ teamId: lane.due.teamId, slow: lane.slow })) continue;
      this.#ready.delete(lane);
      const delivery = lane.take(nowMs);
      if (delivery !== undefined) this.#launch(lane, delivery);
      // A lane that is added again while the set is being walked is visited again, after all others.
      this.#consider(lane);
    }
  }

  #launch(lane: Lane, delivery: DueDelivery): void {
    this.#queuedCharacters -= delivery.body.length;
    const { teamId } = lane.due;
    const { slow } = lane;
    const flight = this.#slots.begin({ holder: lane, teamId, slow, startedAt: this.#elapsed() });
    this.#do(
      this.#send(lane, delivery).finally(() => {
        this.#slots.end(flight);
        if (flight.slow && !slow) lane.aged -= 1;
        lane.landed();
        this.#pump(lane);
      }),
    );
  }

  async #send(lane: Lane, delivery: DueDelivery): Promise<void> {
    const flown = await this.#fly(lane, delivery, this.#cutOff.signal);
    if (flown === 'unsigned') return this.#drop(lane);
    if (flown === 'cut') {
      this.#cut += 1;
      return;
    }
    this.#settler.add(flown.settlement, lane.ordered);
    if (flown.drops) this.#drop(lane);
    if (flown.pauses !== null) {
      this.#do(pauseWebhook(this.#store, this.#log, { ...lane.due, reason: flown.pauses }));
    }
  }

  #afterSettle({ webhookId, deliveryId, health }: Settlement): void {
    const lane = this.#lanes.get(webhookId);
    if (lane === undefined) return;
    lane.release(deliveryId);
    if (health !== null) lane.failingWritten(health === 'failing' ? this.#elapsed() : undefined);
    if (lane.wants && !this.#stopping) this.#do(this.#load(lane));
    else this.#forgetIfIdle(lane);
    this.#pump(lane);
  }

  /** The next look finds it, when the lane has rested. */
  #afterGivingUp({ webhookId, deliveryId }: Settlement): void {
    const lane = this.#lanes.get(webhookId);
    if (lane === undefined) return;
    noteUnsettled(lane, deliveryId, this.#store.now());
    this.#drop(lane);
  }

  #do(task: Promise<void>): void {
    const tracked = task.finally(() => this.#tasks.delete(tracked));
    this.#tasks.add(tracked);
  }

  #drop(lane: Lane): void {
    for (const delivery of lane.drop()) this.#queuedCharacters -= delivery.body.length;
    this.#ready.delete(lane);
  }

  /** Of too many lanes the one goes that was served longest ago and has nothing in memory: never the one just served. */
  #forgetIfIdle(served: Lane): void {
    if (this.#lanes.size <= MAX_REMEMBERED || this.#lanes.get(served.due.webhookId) !== served) return;
    this.#lanes.delete(served.due.webhookId);
    this.#lanes.set(served.due.webhookId, served);
    for (const [id, lane] of this.#lanes) {
      if (lane === served || !lane.isEmpty) continue;
      this.#lanes.delete(id);
      this.#ready.delete(lane);
      this.#alarm.forget(lane);
      return;
    }
  }
}
