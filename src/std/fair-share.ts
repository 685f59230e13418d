/**
 * The rule by which teams share a limited number of places, such as connections, requests or lookups.
 *
 * A team that holds no place gets one while any place is free. A team that holds places gets another place only if it
 * then holds at most three times as many places as remain free. So a single team may hold three quarters of the places.
 * The more teams ask, the fewer places each team may hold, and a place always remains free for the next team. Network
 * switches share their buffers by this rule (dynamic thresholds, Choudhury and Hahne, 1998). The rule needs no
 * reservations and no list of teams.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A team may hold at most this many times the number of free places. */
const TIMES_FREE = 3;
/** The share of all places that a single team can hold. */
export const SHARE_ALONE = TIMES_FREE / (TIMES_FREE + 1);

/**
 * Whether a team may take another place. `held` is the number of places that the team holds; `free` is the number of
 * places that nobody holds.
 */
export function mayTake({ held, free }: { held: number; free: number }): boolean {
  if (held === 0) return free > 0;
  return held + 1 <= TIMES_FREE * (free - 1);
}

/** Counts the places that each team holds. For callers that reject a request instead of letting it wait. */
export class Shares {
  readonly #held = new Map<string, number>();
  #all = 0;

  /** Number of places that are held. */
  get all(): number {
    return this.#all;
  }

  /** Number of places that teams hold, counting at most this many places for each team. */
  allWithin(most: number): number {
    let sum = 0;
    for (const held of this.#held.values()) sum += Math.min(held, most);
    return sum;
  }

  heldBy(team: string): number {
    return this.#held.get(team) ?? 0;
  }

  /** Whether a team may take another place, out of `places` in total. */
  admits(team: string, places: number): boolean {
    return mayTake({ held: this.heldBy(team), free: places - this.#all });
  }

  add(team: string): void {
    this.#held.set(team, this.heldBy(team) + 1);
    this.#all += 1;
  }

  remove(team: string): void {
    const left = this.heldBy(team) - 1;
    if (left < 0) return;
    if (left === 0) this.#held.delete(team);
    else this.#held.set(team, left);
    this.#all -= 1;
  }
}

/** Thrown if no place became available in time, or if too many calls are already waiting. */
export class NoPlaceError extends Error {
  override readonly name = 'NoPlaceError';
}

/** Resolves a waiting call. */
type Go = () => void;

/** A team that holds places, or that waits for a place. */
interface Team {
  /** Waiting calls with priority, oldest first. */
  ahead: Set<Go>;
  /** The other waiting calls, oldest first. */
  others: Set<Go>;
  /** The number of the turn in which the team was last served; 0 if it was never served. */
  servedAt: number;
}

/**
 * A limited number of places that teams take in turns. If no place is free, a call waits in the queue of its team. A
 * place that becomes free goes to the team that holds the fewest places; among teams with equally many, it goes to the
 * team that was served longest ago. So a team with few calls waits for at most one turn, however many calls another
 * team has. The same rule limits the number of waiting calls, so the team with the most waiting calls is rejected
 * first.
 */
export class FairPlaces {
  readonly #places: number;
  readonly #mostWaiting: number;
  readonly #patienceMs: number | undefined;
  readonly #taken = new Shares();
  readonly #waiting = new Shares();
  readonly #teams = new Map<string, Team>();
  #turn = 0;

  /**
   * @param input.mostWaiting maximum number of waiting calls of all teams together. A single team may have at most
   *   three quarters of this number
   * @param input.patienceMs how long a call waits; by default indefinitely
   */
  constructor(input: { places: number; mostWaiting?: number; patienceMs?: number }) {
    this.#places = input.places;
    this.#mostWaiting = input.mostWaiting ?? Number.POSITIVE_INFINITY;
    this.#patienceMs = input.patienceMs;
  }

  /**
   * Takes a place. Resolves with a function that releases the place (calling the function twice is harmless).
   *
   * @param options.ahead whether the call has priority over other calls of its team
   * @throws NoPlaceError
   */
  async take(name: string, options: { ahead?: boolean } = {}): Promise<() => void> {
    const leave = this.takeNow(name);
    if (leave !== undefined) return leave;
    await this.#wait(name, this.#teamOf(name), options);
    return this.#leave(name);
  }

  /** Takes a place, like `take`, if the call does not have to wait for it. Otherwise returns undefined. */
  takeNow(name: string): (() => void) | undefined {
    if (this.#waiting.heldBy(name) > 0 || !this.#taken.admits(name, this.#places)) return undefined;
    this.#serve(name, this.#teamOf(name));
    return this.#leave(name);
  }

  #teamOf(name: string): Team {
    return this.#teams.get(name) ?? { ahead: new Set(), others: new Set(), servedAt: 0 };
  }

  #leave(name: string): () => void {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#release(name);
    };
  }

  /**
   * Takes a place for the team, runs a call, and releases the place.
   *
   * @throws NoPlaceError, or the error of the call
   */
  async run<Result>(team: string, call: () => Promise<Result>): Promise<Result> {
    const leave = await this.take(team);
    try {
      return await call();
    } finally {
      leave();
    }
  }

  #serve(name: string, team: Team): void {
    this.#turn += 1;
    team.servedAt = this.#turn;
    this.#teams.set(name, team);
    this.#taken.add(name);
  }

  #wait(name: string, team: Team, { ahead = false }: { ahead?: boolean }): Promise<void> {
    if (!this.#waiting.admits(name, this.#mostWaiting)) {
      return Promise.reject(new NoPlaceError('Too many calls are already waiting'));
    }
    this.#teams.set(name, team);
    this.#waiting.add(name);
    const queue = ahead ? team.ahead : team.others;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const go = () => {
        clearTimeout(timer);
        resolve();
      };
      queue.add(go);
      if (this.#patienceMs === undefined) return;
      timer = setTimeout(() => {
        queue.delete(go);
        this.#waiting.remove(name);
        this.#forgetIdle(name);
        reject(new NoPlaceError('No place became available in time'));
      }, this.#patienceMs);
    });
  }

  #release(name: string): void {
    this.#taken.remove(name);
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const queue = next.team.ahead.size > 0 ? next.team.ahead : next.team.others;
      const [go] = queue;
      queue.delete(go as Go);
      this.#waiting.remove(next.name);
      this.#serve(next.name, next.team);
      go?.();
    }
    this.#forgetIdle(name);
  }

  /** The team whose turn it is to get a place; undefined if no waiting team may take a place. */
  #next(): { name: string; team: Team } | undefined {
    let first: { name: string; team: Team; held: number } | undefined;
    for (const [name, team] of this.#teams) {
      if (this.#waiting.heldBy(name) === 0 || !this.#taken.admits(name, this.#places)) continue;
      const held = this.#taken.heldBy(name);
      const isSooner =
        first === undefined ||
        held < first.held ||
        (held === first.held && team.servedAt < first.team.servedAt);
      if (isSooner) first = { name, team, held };
    }
    return first;
  }

  #forgetIdle(name: string): void {
    if (this.#taken.heldBy(name) + this.#waiting.heldBy(name) === 0) this.#teams.delete(name);
  }
}

const steps = new FairPlaces({ places: 1 });

/**
 * Resolves in a separate turn of the event loop. `setImmediate` alone would run the steps of all callers in one turn:
 * sixty concurrent searches would delay all other work by sixty steps instead of one. Each team has a queue of its own.
 * With a single queue, a team's only search would wait before each of its steps until every search of another team had
 * made a step.
 */
export async function ownTurn(team: string): Promise<void> {
  const leave = await steps.take(team);
  await nextTurn();
  leave();
}
