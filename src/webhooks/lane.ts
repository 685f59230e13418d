/**
 * One webhook's lane: the deliveries that are in memory, which ids must not be taken again, and when it may send.
 *
 *     load ──▶ queues ──▶ in flight ──▶ settling ──▶ released
 *
 * In the table a delivery stays `waiting` until its settle has committed, so every load finds those in memory
 * once more. `held` is what keeps them from being sent twice: an id enters it when it is loaded, and leaves it
 * when its settle has returned *and* every load begun before that has returned too, for such a load may have
 * read the row as it was before.
 *
 * An ordered lane sends one delivery at a time, and the next one only when that is written down; what it knows of the
 * order is forgotten whenever one fails, because that one stays the first until it is delivered or dead.
 */
import {
  DELIVERY_CLASSES,
  type DeliveryClass,
  type DueDelivery,
  LONGEST_WAIT_MS,
} from '../model/delivery.ts';
import { isSlow, type LaneHealth, MAX_REST_MS, rested, startHealth } from '../model/lane.ts';
import { asOf, type Bucket, FULL_BUCKET, nextClass, refill, tokenAt } from '../model/lane-turn.ts';
import type { DueLane } from '../store/webhook-operations.ts';

/** Deliveries of a class that a queue is filled up to, once it holds less than a quarter of it. */
const PAGE: Readonly<Record<DeliveryClass, number>> = { live: 128, retry: 32, replay: 32 };
const REFILL_SHARE = 1 / 4;
/** An ordered lane is read anew after every failure. */
const ORDERED_PAGE = 16;

export type Limits = Record<DeliveryClass, number>;

export class Lane {
  /** As the store named it last. */
  due: DueLane;
  health: LaneHealth;
  /** Whether something was to be loaded while a load was under way, which may have read too early for it. */
  missed = false;
  /** Requests under way for so long that its other ones count as slow too. */
  aged = 0;
  /** When its lease was last asked for, by the clock that is never set back; undefined when it is not this node's. */
  leasedAtMs: number | undefined;
  /** When it was last given back or lost, by the same clock: an answer to what was asked before is stale. */
  goneAtMs = Number.NEGATIVE_INFINITY;
  /** When it last had something to do, by the same clock. */
  usedAtMs = 0;
  /** When a success was last written down; 0 when that is not known. */
  wellAt = 0;
  /** Until when nothing is sent because of a trouble of ours: see `lane-trouble.ts`. */
  troubledUntil = 0;
  /** Whether it was said that nothing can be signed. */
  unsignedSaid = false;
  #failingWrittenMs: number | undefined;
  /** Classes of which the table may hold something due that is not in memory. */
  readonly #more = new Set<DeliveryClass>();
  #inFlight = 0;
  /** Requests sent since the last one came back. */
  #unanswered = 0;
  #turn = 0;
  #bucket: Bucket = FULL_BUCKET;
  readonly #queues: Record<DeliveryClass, DueDelivery[]> = { live: [], retry: [], replay: [] };
  readonly #held = new Map<string, DeliveryClass>();
  #loading = false;
  #releasedWhileLoading: string[] = [];

  constructor(due: DueLane) {
    this.due = due;
    this.health = startHealth(due.failingSince);
    if (due.failingSince !== null) this.#failingWrittenMs = Number.NEGATIVE_INFINITY;
  }

  get queued(): number {
    return this.#queues.live.length + this.#queues.retry.length + this.#queues.replay.length;
  }

  /** Whether there is room for what the table may still hold. */
  get wants(): boolean {
    return this.#wanted(Number.POSITIVE_INFINITY) !== undefined && !(this.ordered && this.#isUnderWay);
  }

  /** Whether it waits for a first answer since it sent last: while slots are scarce it gets no other one before. */
  get awaits(): boolean {
    return this.#unanswered > 0;
  }

  get slow(): boolean {
    return this.aged > 0 || isSlow(this.health);
  }

  /** Whether nothing of this lane is in memory. */
  get isEmpty(): boolean {
    return this.#held.size === 0 && !this.#loading;
  }

  get ordered(): boolean {
    return this.due.settings.ordered;
  }

  /** Something may have become due. */
  mayHaveMore(): void {
    for (const name of DELIVERY_CLASSES) this.#more.add(name);
  }

  /** Of an ordered lane: whether something is sent and not written down. */
  get #isUnderWay(): boolean {
    return this.#held.size > this.queued;
  }

  /**
   * Takes over what the store says of it.
   *
   * @param askedMs when the store was asked, by the clock that `failingWritten` is told
   */
  name(due: DueLane, askedMs: number): void {
    if (this.leasedAtMs === undefined || due.epoch !== this.due.epoch) this.leasedAtMs = askedMs;
    this.usedAtMs = askedMs;
    const written = this.#failingWrittenMs;
    if (due.failingSince === null && written !== undefined && written < askedMs) {
      // It was resumed, which forgets since when it has failed: it begins anew, and slowly.
      this.health = { ...startHealth(0), failingSince: null };
      this.#failingWrittenMs = undefined;
    }
    this.due = due;
  }

  /** The table knows that it fails (since then), or that it does not any more. */
  failingWritten(atMs: number | undefined): void {
    this.#failingWrittenMs = atMs;
  }

  /** When it may send next, as far as time decides that; infinite when something else must happen first. */
  startsAt(nowMs: number): number {
    const { ordered, ratePerSecond } = this.due.settings;
    if (this.queued === 0 && this.#more.size === 0) return Number.POSITIVE_INFINITY;
    if (this.#inFlight >= (ordered ? 1 : this.health.limit)) return Number.POSITIVE_INFINITY;
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
    this.health = rested(this.health, nowMs);
    if (this.troubledUntil > nowMs + MAX_REST_MS) this.troubledUntil = nowMs;
    return Math.max(this.health.restsUntil, this.troubledUntil);
  }

  /**
   * Queues what is new of a page, and answers it. One load at a time: a call during another answers nothing, and
   * notes in `missed` that there is to be one more.
   *
   * @param most deliveries of a class that are to be in the queue at most
   */
  async load(
    most: number,
    page: (limits: Limits, held: { has(id: string): boolean }) => Promise<DueDelivery[]>,
  ): Promise<DueDelivery[] | undefined> {
    const isOrdered = this.ordered;
    this.missed = this.#loading;
    if (this.#loading) return undefined;
    const wanted = this.#wanted(most);
    // What an ordered lane has under way may fail, and is the first again then.
    if (wanted === undefined || (isOrdered && this.#isUnderWay)) return [];
    this.#loading = true;
    const asked = DELIVERY_CLASSES.filter((name) => wanted[name] > 0 || isOrdered);
    for (const name of asked) this.#more.delete(name);
    try {
      const found = await page(this.#withHeld(wanted), this.#held);
      // A page may be read before an erasure and come after it: what it has as it was is left for the next one.
      const current = found.filter(({ rewrites }) => rewrites >= this.due.rewrites);
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

  /** How many of each class the queues have room for; nothing when they hold enough. */
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

  /** How many to ask the table for: what is held already is found once more. */
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
    const delivery = name && this.#queues[name].shift();
    if (delivery === undefined) return undefined;
    const { ratePerSecond } = this.due.settings;
    if (ratePerSecond !== null) {
      const { tokens } = refill(this.#bucket, ratePerSecond, nowMs);
      this.#bucket = { tokens: tokens - 1, at: nowMs };
    }
    this.#turn += 1;
    this.#inFlight += 1;
    this.#unanswered += 1;
    return delivery;
  }

  landed(): void {
    this.#inFlight -= 1;
    this.#unanswered = 0;
  }

  /** Its attempt is written down, or it is given back unsent: it may be loaded again if it is still due. */
  release(id: string): void {
    if (this.#loading) this.#releasedWhileLoading.push(id);
    else this.#held.delete(id);
  }

  /** Gives back what is queued, and answers it. What is in flight stays so. */
  drop(): DueDelivery[] {
    const dropped = Object.values(this.#queues).flatMap((queue) => queue.splice(0));
    for (const delivery of dropped) this.release(delivery.id);
    if (dropped.length > 0) this.mayHaveMore();
    return dropped;
  }
}
