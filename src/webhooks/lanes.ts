/**
 * Lanes: every webhook has a small queue of its own, so that a slow or dead endpoint delays only itself.
 *
 *     look: which lanes have something due? ──▶ load a page of each ──▶ pump: send within bounds ──▶ settle
 *       ▲ every 500 ms, after commits, on nudge          ▲                   ▲                         │
 *       └────────────────────────────────────────────────┴─── refill, go on ─┴─────────────────────────┘
 *
 * The table is the queue. Being in flight is kept in memory only, so a crash needs no repair: what was not
 * settled is still waiting there. Nothing is written before an attempt; an attempt and what follows from it are
 * written in one transaction.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { type Attempt, afterAttempt, type DueDelivery } from '../model/delivery.ts';
import type { Logger } from '../observe/log.ts';
import { toIso } from '../std/clock.ts';
import type { Sealer } from '../std/seal.ts';
import { Wake } from '../std/wake.ts';
import type { DueLane, Settlement, Store } from '../store/store.ts';
import { LANE_CONCURRENCY, Lane } from './lane.ts';
import { openSecretKey } from './secret.ts';
import { type Sender, sendAttempt } from './send.ts';
import { Settler } from './settler.ts';
import { createTeamSigner } from './signing-keys.ts';

const LOOK_EVERY_MS = 500;
/** Requests in flight. Failing lanes together may hold half of them, so that the others always find room. */
const MAX_IN_FLIGHT = 256;
const MAX_IN_FLIGHT_FAILING = 128;
/** With this many attempts not yet written down the store is slow or away, and nothing more is sent. */
const MAX_UNSETTLED = 512;
const LOAD_LIMIT = 64;
/** A lane with fewer deliveries in its queue is filled up. */
const REFILL_BELOW = 16;
/** Characters of bodies in all queues; beyond it a lane loads only what it can send at once. */
const MAX_QUEUED_CHARACTERS = 64 * 1024 * 1024;
const LOADS_AT_ONCE = 8;
/** What is in flight at a stop may take this long; then it is cut off and stays due. */
const STOP_GRACE_MS = 2_000;
/** Lanes without anything in memory that are remembered because they fail. */
const MAX_REMEMBERED = 10_000;

export class Lanes {
  readonly #store: Store;
  readonly #sealer: Sealer;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #sender: Sender;
  readonly #signer: ReturnType<typeof createTeamSigner>;
  readonly #settler: Settler;
  readonly #wake: Wake;
  readonly #stopGraceMs: number;
  readonly #lanes = new Map<string, Lane>();
  /** Lanes that can send; the one that was served last stands last. */
  readonly #ready = new Set<Lane>();
  readonly #sends = new Set<Promise<void>>();
  readonly #refills = new Set<Promise<void>>();
  #inFlightFailing = 0;
  #queuedCharacters = 0;
  #stopping = false;
  #cutOff = new AbortController();
  #unwatch: (() => void) | undefined;

  /** @param input.totalMs bounds one attempt, from its start to the last byte of the answer */
  constructor(input: {
    store: Store;
    sealer: Sealer;
    dispatcher: Dispatcher;
    log: Logger;
    userAgent: string;
    random?: () => number;
    totalMs?: number;
    stopGraceMs?: number;
  }) {
    this.#store = input.store;
    this.#sealer = input.sealer;
    this.#log = input.log;
    this.#random = input.random ?? Math.random;
    this.#stopGraceMs = input.stopGraceMs ?? STOP_GRACE_MS;
    this.#sender = {
      dispatcher: input.dispatcher,
      now: () => input.store.now(),
      userAgent: input.userAgent,
      ...(input.totalMs === undefined ? {} : { totalMs: input.totalMs }),
    };
    this.#signer = createTeamSigner(input.store, input.sealer);
    this.#settler = new Settler({
      deliveries: input.store.deliveries,
      log: input.log,
      random: this.#random,
      onSettled: (settlement) => this.#afterSettle(settlement),
    });
    this.#wake = new Wake({
      everyMs: LOOK_EVERY_MS,
      random: this.#random,
      look: () => this.#look(),
    });
  }

  start(): void {
    if (this.#stopping) this.#cutOff = new AbortController();
    this.#stopping = false;
    this.#unwatch ??= this.#store.watch((touched) => {
      if (touched.deliveries) this.nudge();
    });
    this.#wake.start();
  }

  /**
   * Sends nothing more, waits a little for what is in flight, and writes down what came of it. What is cut off
   * then stays due and is sent again after the next start, with the same `webhook-id`.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#unwatch?.();
    this.#unwatch = undefined;
    await this.#wake.stop();
    for (const lane of this.#lanes.values()) this.#drop(lane);
    const grace = setTimeout(() => this.#cutOff.abort(), this.#stopGraceMs);
    await Promise.all([...this.#sends, ...this.#refills]);
    clearTimeout(grace);
    await this.#settler.close();
  }

  /** Looks once at what is due; resolves when all of it is sent and settled. */
  async tick(): Promise<void> {
    await this.#look();
    while (this.#sends.size > 0 || this.#refills.size > 0 || this.#settler.size > 0) {
      await Promise.all([...this.#sends, ...this.#refills]);
      await this.#settler.idle();
    }
  }

  /** Something may be due: look soon. */
  nudge(): void {
    this.#wake.nudge();
  }

  async #look(): Promise<void> {
    const waitingBefore = [...this.#lanes.values()].filter((lane) => lane.queued > 0);
    let due: DueLane[];
    try {
      due = await this.#store.deliveries.lanes();
    } catch (error) {
      this.#log.warn({ err: error }, 'delivery.look_failed');
      return;
    }
    const named = new Set(due.map((found) => found.webhookId));
    // What is queued is due in the table, unless the webhook was unsubscribed or paused meanwhile.
    for (const lane of waitingBefore) if (!named.has(lane.due.webhookId)) this.#drop(lane);
    while (due.length > 0 && !this.#stopping) {
      await Promise.all(due.splice(0, LOADS_AT_ONCE).map((found) => this.#load(found)));
      // Reads of an embedded database end within this turn: thousands of lanes must not take the loop for themselves.
      await nextTurn();
    }
    this.#pump();
  }

  /** Fills a lane up. The lane is looked up here: another one may be in its place since `due` was read. */
  async #load(due: DueLane): Promise<void> {
    const { teamId, webhookId } = due;
    const lane = this.#lanes.get(webhookId) ?? new Lane(due);
    lane.due = due;
    this.#lanes.set(webhookId, lane);
    if (lane.queued >= REFILL_BELOW) return;
    const few = lane.failing || this.#queuedCharacters > MAX_QUEUED_CHARACTERS;
    try {
      const fresh = await lane.load(few ? LANE_CONCURRENCY : LOAD_LIMIT, (limit) =>
        this.#store.deliveries.load({ teamId, webhookId, limit }),
      );
      for (const delivery of fresh) this.#queuedCharacters += delivery.body.length;
    } catch (error) {
      this.#log.warn({ err: error, webhookId }, 'delivery.load_failed');
    }
    if (this.#stopping) this.#drop(lane);
    this.#forgetIfIdle(lane);
    this.#pump(lane);
  }

  /** Sends as much as the bounds allow, one delivery of each lane in turn. */
  #pump(changed?: Lane): void {
    if (changed?.canSend) this.#ready.add(changed);
    for (const lane of this.#ready) {
      if (this.#stopping || this.#sends.size >= MAX_IN_FLIGHT || this.#settler.size >= MAX_UNSETTLED) return;
      if (lane.failing && this.#inFlightFailing >= MAX_IN_FLIGHT_FAILING) continue;
      this.#ready.delete(lane);
      const delivery = lane.take();
      if (delivery === undefined) continue;
      this.#queuedCharacters -= delivery.body.length;
      this.#launch(lane, delivery);
      // A lane that is added again while the set is being walked is visited again, after all others.
      if (lane.canSend) this.#ready.add(lane);
    }
  }

  #launch(lane: Lane, delivery: DueDelivery): void {
    const share = lane.failing ? 1 : 0;
    this.#inFlightFailing += share;
    const send = this.#send(lane, delivery).finally(() => {
      this.#sends.delete(send);
      this.#inFlightFailing -= share;
      lane.landed();
      this.#pump(lane);
    });
    this.#sends.add(send);
  }

  async #send(lane: Lane, delivery: DueDelivery): Promise<void> {
    const { teamId, eventId, eventType, body } = delivery;
    const number = delivery.attempt + 1;
    let attempt: Attempt;
    try {
      const privateKey = await this.#signer(teamId);
      const secret = openSecretKey(this.#sealer, { teamId, sealed: lane.due.secret });
      const { url } = lane.due;
      attempt = await sendAttempt(this.#sender, {
        url,
        secret,
        privateKey,
        eventId,
        eventType,
        attempt: number,
        body,
        signal: this.#cutOff.signal,
      });
    } catch (error) {
      // Neither the endpoint nor the delivery is at fault: it stays due, without an attempt used.
      this.#log.error({ err: error, webhookId: lane.due.webhookId, eventId }, 'delivery.not_signed');
      lane.release(delivery.id);
      this.#drop(lane);
      return;
    }
    // An attempt that we cut off ourselves says nothing of the endpoint.
    if (this.#cutOff.signal.aborted && attempt.outcome !== 'ok') lane.release(delivery.id);
    else this.#conclude(lane, delivery, attempt);
  }

  #conclude(lane: Lane, delivery: DueDelivery, attempt: Attempt): void {
    const { teamId, id: deliveryId, webhookId, eventId, eventType: type } = delivery;
    const { outcome, status, durationMs: ms, error } = attempt;
    const number = delivery.attempt + 1;
    const nowMs = this.#store.now();
    const next = afterAttempt({ outcome, status, attempt: number, nowMs, random: this.#random() });
    lane.failing = outcome !== 'ok';
    if (next.state === 'canceled') this.#drop(lane);
    this.#settler.add({ teamId, deliveryId, webhookId, attempt: number, log: attempt, next });
    this.#log.info(
      {
        teamId,
        webhookId,
        eventId,
        deliveryId,
        type,
        attempt: number,
        outcome,
        status,
        ms,
        ...(error === null ? {} : { error }),
        next: next.state === 'waiting' ? toIso(next.nextAt) : next.state,
      },
      'delivery.attempted',
    );
  }

  #afterSettle(settlement: Settlement): void {
    const lane = this.#lanes.get(settlement.webhookId);
    if (lane === undefined) return;
    lane.release(settlement.deliveryId);
    if (lane.more && !this.#stopping) {
      const refill = this.#load(lane.due).finally(() => this.#refills.delete(refill));
      this.#refills.add(refill);
    }
    this.#forgetIfIdle(lane);
    this.#pump();
  }

  #drop(lane: Lane): void {
    for (const delivery of lane.drop()) this.#queuedCharacters -= delivery.body.length;
    this.#ready.delete(lane);
  }

  #forgetIfIdle(lane: Lane): void {
    if (lane.isEmpty && (!lane.failing || this.#lanes.size > MAX_REMEMBERED)) {
      this.#lanes.delete(lane.due.webhookId);
    }
  }
}
