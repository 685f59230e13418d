/**
 * Who may send now: requests in flight are shared among lanes and teams, so that nobody can hold all of them.
 *
 * There are two budgets. Requests of slow lanes may take at most half of all slots, and a request that has been under
 * way for more than a second is counted there too, whatever was thought of its lane: then the slots of endpoints
 * that hang all at the same moment are free again for the others, although those requests go on. A team may have more
 * than a quarter of a budget only while another quarter of it stays free for the others.
 */
import { SLOW_MS } from '../model/lane.ts';

const SLOTS = 512;
const SLOW_SLOTS = SLOTS / 2;
/** Requests in flight, those included that have taken too long to count against the quick ones. */
const MAX_IN_FLIGHT = 2_048;

/** One request in flight. */
export interface Flight<Holder> {
  holder: Holder;
  teamId: string;
  slow: boolean;
  /** By a clock that is never set back, in milliseconds: the one that `age` is told. */
  startedAt: number;
}

interface Count {
  quick: number;
  slow: number;
}

export class Slots<Holder> {
  readonly #all: Count = { quick: 0, slow: 0 };
  readonly #teams = new Map<string, Count>();
  /** Quick ones, the oldest first. */
  readonly #quick = new Set<Flight<Holder>>();

  get size(): number {
    return this.#all.quick + this.#all.slow;
  }

  /** Whether nobody at all may send. */
  get isFull(): boolean {
    return this.size >= MAX_IN_FLIGHT;
  }

  /** Whether more than half is in use: then who has not been answered yet must wait for that. */
  get isScarce(): boolean {
    return this.#used >= SLOTS / 2;
  }

  get #used(): number {
    return this.#all.quick + Math.min(this.#all.slow, SLOW_SLOTS);
  }

  admits({ teamId, slow }: { teamId: string; slow: boolean }): boolean {
    if (this.isFull) return false;
    const team = this.#teams.get(teamId);
    // There is always room for one, whatever the other teams hold.
    if (team === undefined) return true;
    const used = this.#used;
    if (used >= SLOTS) return false;
    return slow ? fits(team.slow, this.#all.slow, SLOW_SLOTS) : fits(team.quick, used, SLOTS);
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

  /** Counts as slow what has been under way for too long, and answers it. */
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

function fits(ofTeam: number, all: number, budget: number): boolean {
  return all < budget && (ofTeam < budget / 4 || all < (budget * 3) / 4);
}
