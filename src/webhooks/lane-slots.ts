/**
 * Limits the requests in flight of all lanes together, so that no lane and no team can occupy all slots.
 *
 * There are two budgets. Slow lanes get at most half of all slots, and every request that has been running for more
 * than a second counts as slow too. So if many endpoints hang at the same time, other lanes can use their slots a
 * second later, while the hanging requests continue. `std/fair-share.ts` decides how much of a budget a team may use.
 */
import { SLOW_MS } from '../model/lane.ts';
import { mayTake, Shares } from '../std/fair-share.ts';

const SLOTS = 512;
const SLOW_SLOTS = SLOTS / 2;
/** Maximum number of requests in flight, including requests that have become slow. */
const MAX_IN_FLIGHT = 2_048;

/** One request in flight. */
export interface Flight<Holder> {
  holder: Holder;
  teamId: string;
  slow: boolean;
  /** By a monotonic clock, in milliseconds. */
  startedAt: number;
}

export class Slots<Holder> {
  readonly #quick = new Shares();
  readonly #slow = new Shares();
  /** Fast requests, oldest first. */
  readonly #flights = new Set<Flight<Holder>>();

  get size(): number {
    return this.#quick.all + this.#slow.all;
  }

  /** Requests that have not become slow. */
  get quick(): number {
    return this.#quick.all;
  }

  /** Whether no lane may send. */
  get isFull(): boolean {
    return this.size >= MAX_IN_FLIGHT;
  }

  /**
   * Whether at least half of the slots are in use. If so, a lane must wait for a response before it sends another
   * request.
   */
  get isScarce(): boolean {
    return this.#used >= SLOTS / 2;
  }

  get #used(): number {
    return this.#quick.all + Math.min(this.#slow.all, SLOW_SLOTS);
  }

  admits({ teamId, slow }: { teamId: string; slow: boolean }): boolean {
    if (this.isFull) return false;
    // Every team always gets at least one slot.
    const held = this.#quick.heldBy(teamId);
    if (held + this.#slow.heldBy(teamId) === 0) return true;
    const free = SLOTS - this.#used;
    if (free <= 0) return false;
    return slow ? this.#slow.admits(teamId, SLOW_SLOTS) : mayTake({ held, free });
  }

  begin(flight: Flight<Holder>): Flight<Holder> {
    (flight.slow ? this.#slow : this.#quick).add(flight.teamId);
    if (!flight.slow) this.#flights.add(flight);
    return flight;
  }

  end(flight: Flight<Holder>): void {
    this.#flights.delete(flight);
    (flight.slow ? this.#slow : this.#quick).remove(flight.teamId);
  }

  /**
   * Moves requests that have been running for more than a second to the slow budget, and returns these requests.
   *
   * @param nowMs the current time of the clock that also measured `startedAt`
   */
  age(nowMs: number): Flight<Holder>[] {
    const aged: Flight<Holder>[] = [];
    for (const flight of this.#flights) {
      if (nowMs - flight.startedAt < SLOW_MS) break;
      this.end(flight);
      flight.slow = true;
      this.begin(flight);
      aged.push(flight);
    }
    return aged;
  }
}
