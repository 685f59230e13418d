/**
 * One webhook's lane: the deliveries that are in memory, and which ids must not be taken again.
 *
 *     load ──▶ queue ──▶ in flight ──▶ settling ──▶ released
 *
 * In the table a delivery stays `waiting` until its settle has committed, so every load finds those in memory
 * once more. `held` is what keeps them from being sent twice: an id enters it when it is loaded, and leaves it
 * when its settle has returned *and* every load begun before that has returned too, for such a load may have
 * read the row as it was before.
 */
import type { DueDelivery } from '../model/delivery.ts';
import type { DueLane } from '../store/store.ts';

/** Requests to one webhook at a time. */
export const LANE_CONCURRENCY = 4;

export class Lane {
  /** As the store named it last. */
  due: DueLane;
  /** Whether the last attempt failed: such a lane gets less of what all lanes share. */
  failing = false;
  /** Whether the last load filled its page, so that more may be waiting than it answered. */
  more = false;
  #inFlight = 0;
  #queue: DueDelivery[] = [];
  readonly #held = new Set<string>();
  #loading = false;
  #releasedWhileLoading: string[] = [];

  constructor(due: DueLane) {
    this.due = due;
  }

  get queued(): number {
    return this.#queue.length;
  }

  get canSend(): boolean {
    return this.#queue.length > 0 && this.#inFlight < LANE_CONCURRENCY;
  }

  /** Whether nothing of this lane is in memory. */
  get isEmpty(): boolean {
    return this.#held.size === 0 && !this.#loading;
  }

  /** Queues what is new of a page, and answers it. One load at a time: a call during another loads nothing. */
  async load(limit: number, page: (limit: number) => Promise<DueDelivery[]>): Promise<DueDelivery[]> {
    if (this.#loading) return [];
    this.#loading = true;
    try {
      const found = await page(limit);
      this.more = found.length >= limit;
      const fresh = found.filter((delivery) => !this.#held.has(delivery.id));
      for (const delivery of fresh) this.#held.add(delivery.id);
      this.#queue.push(...fresh);
      return fresh;
    } finally {
      this.#loading = false;
      for (const id of this.#releasedWhileLoading.splice(0)) this.#held.delete(id);
    }
  }

  /** The next delivery to send; it counts as in flight until `landed`. */
  take(): DueDelivery | undefined {
    const delivery = this.#queue.shift();
    if (delivery !== undefined) this.#inFlight += 1;
    return delivery;
  }

  landed(): void {
    this.#inFlight -= 1;
  }

  /** Its attempt is written down, or it is given back unsent: it may be loaded again if it is still due. */
  release(id: string): void {
    if (this.#loading) this.#releasedWhileLoading.push(id);
    else this.#held.delete(id);
  }

  /** Gives back what is queued, and answers it. What is in flight stays so. */
  drop(): DueDelivery[] {
    const dropped = this.#queue;
    this.#queue = [];
    for (const delivery of dropped) this.release(delivery.id);
    return dropped;
  }
}
