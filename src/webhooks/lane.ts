/**
 * The in-memory queue of one webhook: the deliveries that are loaded, the ids that must not be loaded again, and when
 * the next one may be sent.
 *
 *     load ──▶ queues ──▶ in flight ──▶ settling ──▶ released
 *
 * In the table a delivery stays `waiting` until its settlement has committed, so every load finds again those that are
 * in memory. `held` keeps them from being sent twice: an id enters it when it is loaded, and leaves it when its
 * settlement has committed *and* every load that began earlier has returned, because such a load may have read the
 * row as it was before.
 *
 * An ordered lane sends one delivery at a time, and the next one only when the result is written. When one fails, its
 * queue is dropped and read again, because the failed one stays the first until it is delivered or dead.
 */

import {
  DELIVERY_CLASSES,
  type DeliveryClass,
  type DueDelivery,
  LONGEST_WAIT_MS,
} from '../model/delivery.ts';
import {
  asOf,
  type Breaker,
  type Bucket,
  breakerOf,
  FULL_BUCKET,
  isSameBreaker,
  isSlow,
  type LaneHealth,
  learn,
  MAX_REST_MS,
  nextClass,
  refill,
  rested,
  startHealth,
  tokenAt,
} from '../model/lane.ts';
import type { DueLane } from '../store/operations/lanes.ts';
import type { Settlement } from '../store/operations/settle.ts';

/** A continued success is written down for the webhook this often at most. */
const WRITE_WELL_EVERY_MS = 60_000;
/** How many deliveries of a class a queue is filled up to, once it holds a quarter of that or less. */
const PAGE: Readonly<Record<DeliveryClass, number>> = { live: 128, retry: 32, replay: 32 };
const REFILL_SHARE = 1 / 4;
/** Smaller, because an ordered lane reads its queue again after every failure. */
const ORDERED_PAGE = 16;

export type Limits = Record<DeliveryClass, number>;

export class Lane {
  /** What the store said of it last. */
  #due: DueLane;
  #health: LaneHealth;
  /** Whether a load was requested while another one was under way, which may have read too early for it. */
  #missed = false;
  /** Requests that have been under way for more than a second; while there are any, the lane counts as slow. */
  #aged = 0;
  /** When its lease was last requested, by the monotonic clock; undefined when this node does not hold it. */
  #leasedAtMs: number | undefined;
  /** When it was last released or lost, by the monotonic clock: answers to earlier requests are stale. */
  #goneAtMs = Number.NEGATIVE_INFINITY;
  /** When the store last named it as due, by the monotonic clock. */
  #usedAtMs = 0;
  /** When a success was last written to the webhook; 0 when that is not known. */
  #wellAt = 0;
  /** What was last written down of its circuit breaker. */
  #breaker: Breaker | null;
  /** Until when nothing is sent because of an error on our side: see `giveBack`. */
  #blockedUntil = 0;
  #failingWrittenMs: number | undefined;
  /** Classes of which the table may hold something due that is not in memory. */
  readonly #more = new Set<DeliveryClass>();
  #inFlight = 0;
  /** Requests sent since the last one was answered. */
  #unanswered = 0;
  #turn = 0;
  #bucket: Bucket = FULL_BUCKET;
  readonly #queues: Record<DeliveryClass, DueDelivery[]> = { live: [], retry: [], replay: [] };
  readonly #held = new Map<string, DeliveryClass>();
  /** The delivery that goes next, because somebody has asked for it. A new object for each time. */
  #first: { id: string } | undefined;
  #loading = false;
  #releasedWhileLoading: string[] = [];

  constructor(due: DueLane, health: LaneHealth = startHealth(due.failingSince)) {
    this.#due = due;
    this.#health = health;
    this.#breaker = due.breaker;
    if (due.failingSince !== null) this.#failingWrittenMs = Number.NEGATIVE_INFINITY;
    this.#first = firstOf(due);
  }

  get due(): DueLane {
    return this.#due;
  }

  get health(): LaneHealth {
    return this.#health;
  }

  /** Whether the last call of `load` came during another one, so that the caller must load once more. */
  get missed(): boolean {
    return this.#missed;
  }

  /** Whether this node holds its lease. */
  get isHeld(): boolean {
    return this.#leasedAtMs !== undefined;
  }

  get queued(): number {
    return this.#queues.live.length + this.#queues.retry.length + this.#queues.replay.length;
  }

  /** Whether it should be loaded: there is room, and the table may hold more. */
  get wants(): boolean {
    return this.#wanted(Number.POSITIVE_INFINITY) !== undefined && !(this.ordered && this.#isUnderWay);
  }

  /** Whether a request is unanswered and none was answered since: while slots are scarce, it gets no further one. */
  get awaits(): boolean {
    return this.#unanswered > 0;
  }

  get slow(): boolean {
    return this.#aged > 0 || isSlow(this.#health);
  }

  /** Whether no delivery of it is in memory. */
  get isEmpty(): boolean {
    return this.#held.size === 0 && !this.#loading;
  }

  get ordered(): boolean {
    return this.#due.settings.ordered;
  }

  /** Notes that the table may hold more due deliveries. */
  mayHaveMore(): void {
    for (const name of DELIVERY_CLASSES) this.#more.add(name);
  }

  /** Whether a delivery is in flight or not yet settled. */
  get #isUnderWay(): boolean {
    return this.#held.size > this.queued;
  }

  /**
   * Updates it from what the store returned.
   *
   * @param askedMs when the store was asked, by the monotonic clock
   */
  name(due: DueLane, askedMs: number): void {
    // Another node may have written in between.
    if (due.epoch !== this.#due.epoch) this.#breaker = due.breaker;
    if (this.#leasedAtMs === undefined || due.epoch !== this.#due.epoch) this.#leasedAtMs = askedMs;
    this.#usedAtMs = askedMs;
    const written = this.#failingWrittenMs;
    if (due.failingSince === null && written !== undefined && written < askedMs) {
      // The webhook was resumed, which resets the failure: start again, slowly.
      this.#health = { ...startHealth(0), failingSince: null };
      this.#breaker = null;
      this.#failingWrittenMs = undefined;
    }
    if (this.isAskedAnew(due)) {
      // One request shows whether the rest was still needed.
      this.#health = { ...this.#health, restsUntil: 0, limit: this.#rests ? 1 : this.#health.limit };
      this.#first = firstOf(due);
    }
    this.#due = due;
  }

  /** Whether somebody has asked to send a delivery at once since the store last named the lane. */
  isAskedAnew({ asked }: DueLane): boolean {
    const known = this.#due.asked;
    if (asked === null) return false;
    return (
      known === null ||
      asked.at > known.at ||
      (asked.at === known.at && asked.deliveryId !== known.deliveryId)
    );
  }

  get #rests(): boolean {
    return this.#health.restsUntil > 0;
  }

  /** Notes when the table learned that it fails, by the monotonic clock; undefined: that it no longer fails. */
  failingWritten(atMs: number | undefined): void {
    this.#failingWrittenMs = atMs;
  }

  /** When it may send next, in epoch milliseconds; infinite when something else than time must pass first. */
  startsAt(nowMs: number): number {
    const { ordered, ratePerSecond } = this.#due.settings;
    if (this.queued === 0 && this.#more.size === 0) return Number.POSITIVE_INFINITY;
    if (this.#inFlight >= (ordered ? 1 : this.#health.limit)) return Number.POSITIVE_INFINITY;
    if (ordered && (this.#loading || this.#isUnderWay)) return Number.POSITIVE_INFINITY;
    const [first] = this.#queues.live;
    this.#bucket = asOf(this.#bucket, nowMs);
    return Math.max(
      this.restsUntil(nowMs),
      ratePerSecond === null ? 0 : tokenAt(this.#bucket, ratePerSecond),
      ordered && first !== undefined && first.dueAt <= nowMs + LONGEST_WAIT_MS ? first.dueAt : 0,
    );
  }

  restsUntil(nowMs: number): number {
    this.#health = rested(this.#health, nowMs);
    if (this.#blockedUntil > nowMs + MAX_REST_MS) this.#blockedUntil = nowMs;
    return Math.max(this.#health.restsUntil, this.#blockedUntil);
  }

  /**
   * Reads a page, and queues and returns those of its deliveries that are not held yet. One load at a time: a call during
   * another one returns undefined, and sets `missed` so that the caller loads once more.
   *
   * @param most limit for the queue of each class
   */
  async load(
    most: number,
    page: (
      limits: Limits,
      held: { has(id: string): boolean },
      first: string | undefined,
    ) => Promise<DueDelivery[]>,
  ): Promise<DueDelivery[] | undefined> {
    const isOrdered = this.ordered;
    this.#missed = this.#loading;
    if (this.#loading) return undefined;
    const wanted = this.#wanted(most);
    // If what an ordered lane has under way fails, it is the first again.
    if (wanted === undefined || (isOrdered && this.#isUnderWay)) return [];
    this.#loading = true;
    const asked = DELIVERY_CLASSES.filter((name) => wanted[name] > 0 || isOrdered);
    for (const name of asked) this.#more.delete(name);
    try {
      const first = this.#first;
      const found = await page(this.#withHeld(wanted), this.#held, first?.id);
      if (first !== undefined && this.#first === first) this.#forgetFirst(first.id, found);
      // A page that was read before an erasure may arrive after it: outdated bodies are left to the next page.
      const current = found.filter(({ rewrites }) => rewrites >= this.#due.rewrites);
      if (current.length < found.length) this.mayHaveMore();
      const fresh = current.filter((delivery) => !this.#held.has(delivery.id));
      for (const name of asked) {
        const count = isOrdered ? fresh.length : fresh.filter((delivery) => delivery.class === name).length;
        if (count >= wanted[isOrdered ? 'live' : name]) this.#more.add(name);
      }
      for (const delivery of fresh) {
        this.#held.set(delivery.id, delivery.class);
        this.#queues[isOrdered ? 'live' : delivery.class].push(delivery);
      }
      if (isOrdered) this.#queues.live.sort((a, b) => a.sequence - b.sequence);
      return fresh;
    } catch (error) {
      this.mayHaveMore();
      throw error;
    } finally {
      this.#loading = false;
      for (const id of this.#releasedWhileLoading.splice(0)) this.#held.delete(id);
    }
  }

  /**
   * The webhook keeps for ever what was last asked for: once the table has it no longer, neither loads nor `take` look
   * for it.
   */
  #forgetFirst(id: string, found: readonly DueDelivery[]): void {
    if (!this.#held.has(id) && !found.some((delivery) => delivery.id === id)) this.#first = undefined;
  }

  /** How many of each class the queues have room for; undefined when they hold enough. */
  #wanted(most: number): Limits | undefined {
    const wanted: Limits = { live: 0, retry: 0, replay: 0 };
    for (const name of this.#more) {
      const page = Math.min(most, this.ordered ? ORDERED_PAGE : PAGE[name]);
      const queue = this.ordered ? 'live' : name;
      const queued = this.#queues[queue].length;
      if (queued <= page * REFILL_SHARE) wanted[queue] = page - queued;
    }
    return wanted.live + wanted.retry + wanted.replay === 0 ? undefined : wanted;
  }

  /** How many to ask the table for: it returns again what is held already. */
  #withHeld(wanted: Limits): Limits {
    const limits = { ...wanted };
    for (const held of this.#held.values()) {
      const queue = this.ordered ? 'live' : held;
      if (limits[queue] > 0) limits[queue] += 1;
    }
    return limits;
  }

  /** The next delivery to send; it counts as in flight until `landed`. */
  take(nowMs: number): DueDelivery | undefined {
    if (this.startsAt(nowMs) > nowMs) return undefined;
    const { live, retry, replay } = this.#queues;
    const name = nextClass(this.#turn, { live: live.length, retry: retry.length, replay: replay.length });
    const delivery = this.#takeFirst() ?? (name && this.#queues[name].shift());
    if (delivery === undefined) return undefined;
    const { ratePerSecond } = this.#due.settings;
    if (ratePerSecond !== null) {
      const { tokens } = refill(this.#bucket, ratePerSecond, nowMs);
      this.#bucket = { tokens: tokens - 1, at: nowMs };
    }
    this.#turn += 1;
    this.#inFlight += 1;
    this.#unanswered += 1;
    return delivery;
  }

  #takeFirst(): DueDelivery | undefined {
    if (this.#first === undefined || this.ordered) return undefined;
    const { id } = this.#first;
    for (const queue of Object.values(this.#queues)) {
      const place = queue.findIndex((delivery) => delivery.id === id);
      if (place === -1) continue;
      this.#first = undefined;
      return queue.splice(place, 1)[0];
    }
    return undefined;
  }

  /** One of its requests has been under way for more than a second. */
  hasAged(): void {
    this.#aged += 1;
  }

  /** The request of the delivery that was taken has ended. @param aged whether `hasAged` was called for it */
  landed(aged = false): void {
    this.#inFlight -= 1;
    this.#unanswered = 0;
    if (aged) this.#aged -= 1;
  }

  /**
   * Learns from an attempt.
   *
   * @returns what is to be written down of the webhook: whether it fails or works now, and its circuit breaker; null and
   *   undefined where that is known
   */
  concluded(
    seen: Parameters<typeof learn>[1],
  ): Pick<Settlement, 'health' | 'breaker'> & { before: LaneHealth } {
    const { verdict, nowMs } = seen;
    const before = this.#health;
    this.#health = learn(before, seen);
    let health: Settlement['health'] = null;
    if (verdict !== 'well') health = before.failingSince === null ? 'failing' : null;
    else if (before.failingSince !== null || Math.abs(nowMs - this.#wellAt) >= WRITE_WELL_EVERY_MS)
      health = 'well';
    if (health === 'well') this.#wellAt = nowMs;
    const breaker = breakerOf(this.#health, this.#breaker, nowMs);
    if (isSameBreaker(breaker, this.#breaker)) return { before, health, breaker: undefined };
    this.#breaker = breaker;
    return { before, health, breaker };
  }

  /** Milliseconds since its lease was last requested; infinite when this node does not hold it. */
  leaseAgeMs(nowMs: number): number {
    return this.#leasedAtMs === undefined ? Number.POSITIVE_INFINITY : nowMs - this.#leasedAtMs;
  }

  /** Milliseconds since the store last named it as due. */
  idleMs(nowMs: number): number {
    return nowMs - this.#usedAtMs;
  }

  leaseRenewed(askedMs: number): void {
    if (this.#leasedAtMs !== undefined) this.#leasedAtMs = Math.max(this.#leasedAtMs, askedMs);
  }

  /**
   * This node no longer holds it: another one has taken it, or it is being released.
   *
   * @param atMs answers of the store to what was asked before are stale; infinite until the release is done
   */
  lost(atMs: number): void {
    this.#leasedAtMs = undefined;
    this.#goneAtMs = atMs;
  }

  /** Whether what the store was asked then says nothing about it now. */
  isStale(askedMs: number): boolean {
    return askedMs < this.#goneAtMs;
  }

  /** Its attempt is settled, or it was not sent: it may be loaded again if it is still due. */
  release(id: string): void {
    if (this.#loading) this.#releasedWhileLoading.push(id);
    else this.#held.delete(id);
  }

  /** Releases a delivery that an error on our side keeps from being sent or settled, and rests until a time. */
  giveBack(id: string, untilMs: number): void {
    this.#blockedUntil = untilMs;
    this.release(id);
    this.mayHaveMore();
  }

  /** Empties the queues and returns what was in them; that may be loaded again. What is in flight stays in flight. */
  drop(): DueDelivery[] {
    const dropped = Object.values(this.#queues).flatMap((queue) => queue.splice(0));
    for (const delivery of dropped) this.release(delivery.id);
    if (dropped.length > 0) this.mayHaveMore();
    return dropped;
  }
}

function firstOf({ asked }: DueLane): { id: string } | undefined {
  return asked === null ? undefined : { id: asked.deliveryId };
}
