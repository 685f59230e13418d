/**
 * A bounded resource whose places teams take in turns. How many a team may hold is decided by `fair-share.ts`. Whoever
 * finds no place waits in the line of its team; a place that becomes free goes to the team that holds the fewest, and
 * between equals to the one served longest ago. So a team that asks for little waits for one turn at most, however much
 * another one asks for. Lines are bounded by the same rule, which refuses the team that has the most waiting.
 */
import { Shares } from './fair-share.ts';

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
