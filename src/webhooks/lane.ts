/**
 * The in-memory queue of one webhook: its loaded deliveries, the ids of deliveries that must not be loaded again, and
 * the time when the next delivery may be sent.
 *
 *     load ──▶ queues ──▶ in flight ──▶ settling ──▶ released
 *
 * In the table, a delivery stays `waiting` until its settlement has committed, so every load also returns deliveries
 * that are already in memory. `#held` keeps these deliveries from being sent twice: an id is added when its delivery is
 * loaded, and removed when the settlement has committed *and* all loads that started before the commit have returned,
 * because such a load may have read the row in its old state.
 *
 * An ordered lane sends one delivery at a time, and the next delivery only after the result is written. After a
 * failure, the queue of the lane is dropped and loaded again, because the failed delivery stays first until it is
 * delivered or dead.
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

/** Minimum interval between two updates of a webhook's last success. */
const WRITE_WELL_EVERY_MS = 60_000;
/** Size of the queue of each class. The queue is refilled once at most `REFILL_SHARE` of this number is left. */
const PAGE: Readonly<Record<DeliveryClass, number>> = { live: 128, retry: 32, replay: 32 };
const REFILL_SHARE = 1 / 4;
/**
 * Size of each queue of an ordered lane. It is smaller than `PAGE`, because an ordered lane reloads its queue after
 * every failure.
 */
const ORDERED_PAGE = 16;

export type Limits = Record<DeliveryClass, number>;

export class Lane {
  /** The data of the lane that the store returned last. */
  #due: DueLane;
  #health: LaneHealth;
  /** Whether `load` was called while another load was running, which may have read the table too early. */
  #missed = false;
  /**
   * Number of requests that have been running for more than a second. With at least one such request, the lane counts
   * as slow.
   */
  #aged = 0;
  /** When the lease was last requested, by the monotonic clock; undefined if this node does not hold the lease. */
  #leasedAtMs: number | undefined;
  /**
   * When the lease was last released or lost, by the monotonic clock. Results of reads that started earlier are stale.
   */
  #goneAtMs = Number.NEGATIVE_INFINITY;
  /** When the store last reported the lane as due, by the monotonic clock. */
  #usedAtMs = 0;
  /** When a success was last written to the webhook; 0 if this time is unknown. */
  #wellAt = 0;
  /** The stored state of the circuit breaker. */
  #breaker: Breaker | null;
  /** Nothing is sent before this time, because the service itself had an error: see `postpone`. */
  #blockedUntil = 0;
  /**
   * When a failure was written to the webhook, by the monotonic clock; undefined if the webhook is not marked as
   * failing.
   */
  #failingWrittenMs: number | undefined;
  /** Classes that may have more due deliveries in the table. */
  readonly #more = new Set<DeliveryClass>();
  #inFlight = 0;
  /** Number of requests sent since the last response. */
  #withoutResponse = 0;
  #turn = 0;
  #bucket: Bucket = FULL_BUCKET;
  readonly #queues: Record<DeliveryClass, DueDelivery[]> = { live: [], retry: [], replay: [] };
  readonly #held = new Map<string, DeliveryClass>();
  /** The delivery to send next because a user asked to send it now. Each such request creates a new object. */
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

  /** Whether the last call of `load` came while another load was running, so that the caller must load again. */
  get missed(): boolean {
    return this.#missed;
  }

  /** Whether this node holds the lease. */
  get isHeld(): boolean {
    return this.#leasedAtMs !== undefined;
  }

  get queued(): number {
    return this.#queues.live.length + this.#queues.retry.length + this.#queues.replay.length;
  }

  /** Whether to load more deliveries: the queue has room, and the table may contain more of them. */
  get wantsMore(): boolean {
    return this.#wanted(Number.POSITIVE_INFINITY) !== undefined && !(this.ordered && this.#isSending);
  }

  /**
   * Whether requests were sent since the last response. If so, the lane sends no further request while slots are
   * scarce.
   */
  get awaitsResponse(): boolean {
    return this.#withoutResponse > 0;
  }

  get slow(): boolean {
    return this.#aged > 0 || isSlow(this.#health);
  }

  /** Whether no delivery of the lane is in memory. */
  get isEmpty(): boolean {
    return this.#held.size === 0 && !this.#loading;
  }

  get ordered(): boolean {
    return this.#due.settings.ordered;
  }

  /** Records that the table may contain more due deliveries. */
  mayHaveMore(): void {
    for (const name of DELIVERY_CLASSES) this.#more.add(name);
  }

  /** Whether a delivery is in flight or not yet settled. */
  get #isSending(): boolean {
    return this.#held.size > this.queued;
  }

  /**
   * Updates the lane with the data that the store returned to a read. The read was started at `askedMs`, by the
   * monotonic clock.
   */
  update(due: DueLane, askedMs: number): void {
    // If the epoch has changed, another node may have written to the webhook since the last update.
    if (due.epoch !== this.#due.epoch) this.#breaker = due.breaker;
    if (this.#leasedAtMs === undefined || due.epoch !== this.#due.epoch) this.#leasedAtMs = askedMs;
    this.#usedAtMs = askedMs;
    if (due.url !== this.#due.url) {
      // What the lane has learned is about another endpoint.
      this.#health = startHealth(due.failingSince);
      this.#breaker = due.breaker;
      this.#failingWrittenMs = due.failingSince === null ? undefined : Number.NEGATIVE_INFINITY;
      this.#withoutResponse = 0;
      this.#wellAt = 0;
    }
    const written = this.#failingWrittenMs;
    if (due.failingSince === null && written !== undefined && written < askedMs) {
      // The webhook was resumed, which resets its failures, so the lane starts slowly again.
      this.#health = { ...startHealth(0), failingSince: null };
      this.#breaker = null;
      this.#failingWrittenMs = undefined;
    }
    if (this.hasNewRequest(due)) {
      // A single request is sent, which shows whether the lane still needs to rest.
      const { restsUntil, limit } = this.#health;
      this.#health = { ...this.#health, restsUntil: 0, limit: restsUntil > 0 ? 1 : limit };
      this.#first = firstOf(due);
    }
    this.#due = due;
  }

  /** Whether a user has asked to send a delivery now since the last update. */
  hasNewRequest({ asked }: DueLane): boolean {
    const known = this.#due.asked;
    if (asked === null) return false;
    return (
      known === null ||
      asked.at > known.at ||
      (asked.at === known.at && asked.deliveryId !== known.deliveryId)
    );
  }

  /** Records when a failure was written to the webhook, by the monotonic clock. Undefined: a success was written. */
  failingWritten(atMs: number | undefined): void {
    this.#failingWrittenMs = atMs;
  }

  /** When the lane may send next, in epoch milliseconds; infinite if the lane waits for something other than a time. */
  startsAt(nowMs: number): number {
    const { ordered, ratePerSecond } = this.#due.settings;
    if (this.queued === 0 && this.#more.size === 0) return Number.POSITIVE_INFINITY;
    if (this.#inFlight >= (ordered ? 1 : this.#health.limit)) return Number.POSITIVE_INFINITY;
    if (ordered && (this.#loading || this.#isSending)) return Number.POSITIVE_INFINITY;
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
   * Loads a page of deliveries, and queues and returns those that are not held yet. Only one load runs at a time: a
   * call while another load is running returns undefined, and sets `missed` so that the caller loads again.
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
    // An ordered lane does not load while a delivery is running: if the delivery fails, it is the first one again.
    if (wanted === undefined || (isOrdered && this.#isSending)) return [];
    this.#loading = true;
    const asked = DELIVERY_CLASSES.filter((name) => wanted[name] > 0 || isOrdered);
    for (const name of asked) this.#more.delete(name);
    try {
      const first = this.#first;
      const found = await page(this.#withHeld(wanted), this.#held, first?.id);
      if (first !== undefined && this.#first === first) this.#forgetFirst(first.id, found);
      // A page that was read before an erasure may arrive after it. Deliveries with outdated bodies are skipped, and
      // the next page contains them again.
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

  /** Drops the user's request to send a delivery next, once the delivery is neither in memory nor in the table. */
  #forgetFirst(id: string, found: readonly DueDelivery[]): void {
    if (!this.#held.has(id) && !found.some((delivery) => delivery.id === id)) this.#first = undefined;
  }

  /**
   * How many further deliveries of each class the queues can hold; undefined if the queues contain enough deliveries.
   */
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

  /** Limits for the query. They include the deliveries that are already held, because the query returns these too. */
  #withHeld(wanted: Limits): Limits {
    const limits = { ...wanted };
    for (const held of this.#held.values()) {
      const queue = this.ordered ? 'live' : held;
      if (limits[queue] > 0) limits[queue] += 1;
    }
    return limits;
  }

  /** The next delivery to send. It counts as in flight until `requestEnded`. */
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
    this.#withoutResponse += 1;
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

  /** Call this method when a request has been running for more than a second. */
  hasAged(): void {
    this.#aged += 1;
  }

  /**
   * Call this method when a request has ended.
   *
   * @param aged whether `hasAged` was called for the request
   */
  requestEnded(aged = false): void {
    this.#inFlight -= 1;
    this.#withoutResponse = 0;
    if (aged) this.#aged -= 1;
  }

  /**
   * Updates the lane with the result of an attempt.
   *
   * @returns the changes to write to the webhook: whether it is failing or working (null: unchanged), and its circuit
   *   breaker (undefined: unchanged)
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

  /** Milliseconds since the lease was last requested; infinite if this node does not hold the lease. */
  leaseAgeMs(nowMs: number): number {
    return this.#leasedAtMs === undefined ? Number.POSITIVE_INFINITY : nowMs - this.#leasedAtMs;
  }

  /** Milliseconds since the store last reported the lane as due. */
  idleMs(nowMs: number): number {
    return nowMs - this.#usedAtMs;
  }

  leaseRenewed(askedMs: number): void {
    if (this.#leasedAtMs !== undefined) this.#leasedAtMs = Math.max(this.#leasedAtMs, askedMs);
  }

  /**
   * Call this method when this node no longer holds the lease, because another node has taken the lease or this node is
   * releasing it.
   *
   * @param atMs results of reads that started before this time are stale; infinite until the release has finished
   */
  lost(atMs: number): void {
    this.#leasedAtMs = undefined;
    this.#goneAtMs = atMs;
  }

  /** Whether the result of a read that started at this time is stale. */
  isStale(askedMs: number): boolean {
    return askedMs < this.#goneAtMs;
  }

  /**
   * Call this method when an attempt was settled, or when nothing was sent. The delivery may be loaded again if it is
   * still due.
   */
  release(id: string): void {
    if (this.#loading) this.#releasedWhileLoading.push(id);
    else this.#held.delete(id);
  }

  /**
   * Releases a delivery that was not sent or not settled because the service itself had an error. The lane then rests
   * until the given time.
   */
  postpone(id: string, untilMs: number): void {
    this.#blockedUntil = untilMs;
    this.release(id);
    this.mayHaveMore();
  }

  /** Empties the queues and returns their deliveries, which may be loaded again. Requests in flight continue. */
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
