/**
 * The rule by which teams share a bounded number of places, whatever these are: connections, requests, look-ups.
 *
 * A team that holds none gets one while any is free. A team that holds some gets another only if it then holds at most
 * three times as many as remain free. So a team alone may hold three quarters of the places; the more teams ask, the
 * less each may hold, and something always remains free for the next. This is the rule of dynamic thresholds by which
 * switches share their buffers (Choudhury and Hahne, 1998): it needs no reservation per team and no list of teams.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How many times what remains free a team may hold. */
const TIMES_FREE = 3;
/** The share of all places that one team can hold while it is alone. */
export const SHARE_ALONE = TIMES_FREE / (TIMES_FREE + 1);

/** Whether a team may take one more place. @param at.held how many it holds; `free`: how many nobody holds */
export function mayTake({ held, free }: { held: number; free: number }): boolean {
  if (held === 0) return free > 0;
  return held + 1 <= TIMES_FREE * (free - 1);
}

/** Counts who holds how many of a number of places. For callers that refuse instead of waiting. */
export class Shares {
  readonly #held = new Map<string, number>();
  #all = 0;

  /** How many places are held. */
  get all(): number {
    return this.#all;
  }

  /** How many places are held, if no team is counted with more than so many. */
  allWithin(most: number): number {
    let sum = 0;
    for (const held of this.#held.values()) sum += Math.min(held, most);
    return sum;
  }

  heldBy(team: string): number {
    return this.#held.get(team) ?? 0;
  }

  /** Whether a team may take one more of so many places. */
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

/** No place became free in time, or too much of this team waits already. */
export class NoPlaceError extends Error {
  override readonly name = 'NoPlaceError';
}

/** Lets one that waits go on. */
type Go = () => void;

/** A team that holds places or waits for one. */
interface Team {
  /** Those that wait, oldest first: ahead of the others, and the others. */
  ahead: Set<Go>;
  others: Set<Go>;
  /** The number of the turn in which it was served last; 0: never. */
  servedAt: number;
}

/**
 * A bounded resource whose places teams take in turns. Whoever finds no place waits in the line of its team; a place
 * that becomes free goes to the team that holds the fewest, and between equals to the one served longest ago. So a team
 * that asks for little waits for one turn at most, however much another one asks for. Lines are bounded by the same
 * rule, which refuses the team that has the most waiting.
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
   * @param input.mostWaiting how many may wait, of all teams together; a team alone three quarters of them
   * @param input.patienceMs how long one waits at most; without end by default
   */
  constructor(input: { places: number; mostWaiting?: number; patienceMs?: number }) {
    this.#places = input.places;
    this.#mostWaiting = input.mostWaiting ?? Number.POSITIVE_INFINITY;
    this.#patienceMs = input.patienceMs;
  }

  /**
   * Resolves with a function that gives the place back (twice is harmless).
   *
   * @param options.ahead before those of the same team that are not
   * @throws NoPlaceError
   */
  async take(name: string, options: { ahead?: boolean } = {}): Promise<() => void> {
    const team = this.#teams.get(name) ?? { ahead: new Set(), others: new Set(), servedAt: 0 };
    const isFirst = this.#waiting.heldBy(name) === 0;
    if (isFirst && this.#taken.admits(name, this.#places)) this.#serve(name, team);
    else await this.#wait(name, team, options);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#giveBack(name);
    };
  }

  /** Runs a call in a place of the team. @throws NoPlaceError, or what the call throws */
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
      return Promise.reject(new NoPlaceError('Too many wait already'));
    }
    this.#teams.set(name, team);
    this.#waiting.add(name);
    const line = ahead ? team.ahead : team.others;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const go = () => {
        clearTimeout(timer);
        resolve();
      };
      line.add(go);
      if (this.#patienceMs === undefined) return;
      timer = setTimeout(() => {
        line.delete(go);
        this.#waiting.remove(name);
        this.#forgetIdle(name);
        reject(new NoPlaceError('No place became free in time'));
      }, this.#patienceMs);
    });
  }

  #giveBack(name: string): void {
    this.#taken.remove(name);
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const line = next.team.ahead.size > 0 ? next.team.ahead : next.team.others;
      const [go] = line as Set<Go>;
      line.delete(go as Go);
      this.#waiting.remove(next.name);
      this.#serve(next.name, next.team);
      go?.();
    }
    this.#forgetIdle(name);
  }

  /** The team whose turn it is, if a place is free for one that waits. */
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
 * Resolves in a turn of its own. `setImmediate` alone runs the steps of all callers in one turn: sixty searches at once
 * would keep everybody else waiting for sixty steps instead of one. One line for all callers would keep a team's one
 * search waiting for a step of each search of another team, for each of its own steps.
 */
export async function ownTurn(team: string): Promise<void> {
  const leave = await steps.take(team);
  await nextTurn();
  leave();
}
