/**
 * Limits the requests in flight of all lanes together, so that no lane and no team can take all slots.
 *
 * There are two budgets. Requests of slow lanes get at most half of all slots, and every request that has been under way
 * for more than a second counts as slow too. So when many endpoints begin to hang at once, their slots are free for
 * others a second later, while their requests go on. How much of a budget a team may use is decided by
 * `std/fair-share.ts`.
 */
import { SLOW_MS } from '../model/lane.ts';
import { mayTake } from '../std/fair-share.ts';

const SLOTS = 512;
const SLOW_SLOTS = SLOTS / 2;
/** Limit for requests in flight, including those that have become slow. */
const MAX_IN_FLIGHT = 2_048;

/** One request in flight. */
export interface Flight<Holder> {
  holder: Holder;
  teamId: string;
  slow: boolean;
  /** By a monotonic clock, in milliseconds. */
  startedAt: number;
}

interface Count {
  quick: number;
  slow: number;
}

export class Slots<Holder> {
  readonly #all: Count = { quick: 0, slow: 0 };
  readonly #teams = new Map<string, Count>();
  /** Quick requests, oldest first. */
  readonly #quick = new Set<Flight<Holder>>();

  get size(): number {
    return this.#all.quick + this.#all.slow;
  }

  /** Whether no lane may send. */
  get isFull(): boolean {
    return this.size >= MAX_IN_FLIGHT;
  }

  /** Whether half of the slots are in use: then a lane with an unanswered request waits for its response. */
  get isScarce(): boolean {
    return this.#used >= SLOTS / 2;
  }

  get #used(): number {
    return this.#all.quick + Math.min(this.#all.slow, SLOW_SLOTS);
  }

  admits({ teamId, slow }: { teamId: string; slow: boolean }): boolean {
    if (this.isFull) return false;
    const team = this.#teams.get(teamId);
    // Every team always gets at least one.
    if (team === undefined) return true;
    const used = this.#used;
    if (used >= SLOTS) return false;
    return slow
      ? mayTake({ held: team.slow, free: SLOW_SLOTS - this.#all.slow })
      : mayTake({ held: team.quick, free: SLOTS - used });
  }

  begin(flight: Flight<Holder>): Flight<Holder> {
    const team = this.#teams.get(flight.teamId) ?? { quick: 0, slow: 0 };
    this.#teams.set(flight.teamId, team);
    const budget = flight.slow ? 'slow' : 'quick';
    team[budget] += 1;
    this.#all[budget] += 1;
    if (!flight.slow) this.#quick.add(flight);
    return flight;
  }

  end(flight: Flight<Holder>): void {
    this.#quick.delete(flight);
    const team = this.#teams.get(flight.teamId);
    if (team === undefined) return;
    const budget = flight.slow ? 'slow' : 'quick';
    team[budget] -= 1;
    this.#all[budget] -= 1;
    if (team.quick + team.slow === 0) this.#teams.delete(flight.teamId);
  }

  /**
   * Moves requests that have been under way for more than a second to the slow budget, and returns them.
   *
   * @param nowMs by the clock of `startedAt`
   */
  age(nowMs: number): Flight<Holder>[] {
    const aged: Flight<Holder>[] = [];
    for (const flight of this.#quick) {
      if (nowMs - flight.startedAt < SLOW_MS) break;
      this.end(flight);
      flight.slow = true;
      this.begin(flight);
      aged.push(flight);
    }
    return aged;
  }
}
