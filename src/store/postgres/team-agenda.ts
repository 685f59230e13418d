/**
 * What a node remembers of the teams' agendas, so that it need not search all teams for work.
 *
 *     commits of this node ──┐
 *     hints of other nodes ──┼──▶ teams that may be due ──▶ a search of one team ──▶ when the team is next due
 *     sweep of the agendas ──┘
 *
 * Hints make work start quickly. The sweep reads an index of the teams' rows. It finds what no hint has named: work that
 * became due later, and work whose hint was lost.
 */

import { performance } from 'node:perf_hooks';
import type { Clock } from '../../std/clock.ts';
import type { DueTeam } from '../operations/agenda.ts';
import type { Store } from '../store.ts';
import type { AgendaItem } from '../transaction.ts';

/** How far ahead a sweep looks. This is longer than the time between two sweeps. */
const AHEAD_MS = 60_000;
/** Time between two sweeps while hints arrive. */
const SWEEP_EVERY_MS = 5_000;
/**
 * Maximum number of teams that a sweep reads: those that have been due longest. If searches have found that all of these
 * stay due, the next sweep reads the teams after them.
 */
const MAX_SWEPT = 10_000;

const FROM_START = -1;

export interface AgendaOptions {
  item: AgendaItem;
  /** Work that is dated further ahead was written before the clock was set back, and counts as due. */
  longestWaitMs: number;
  /** Lists teams from the index of the item. */
  read: Store['agenda']['due'];
  /** The database's clock. */
  now: Clock;
  /** Whether hints of other processes arrive. If not, a sweep precedes every search. */
  isTold(): boolean;
  /** Milliseconds of a monotonic clock. */
  elapsed?: Clock;
}

/** The teams that may have due work of one kind. */
export class TeamAgenda {
  readonly #options: AgendaOptions;
  readonly #elapsed: Clock;
  /** When each team is due, the number of the change that said so, and of the last search of the team (0: none). */
  readonly #teams = new Map<string, { at: number; change: number; search: number }>();
  #changes = 0;
  #searches = 0;
  #sweepAtMs = Number.NEGATIVE_INFINITY;
  #sweeping: Promise<void> | undefined;
  /** The time after which the next sweep begins: earlier sweeps have read the teams up to it. */
  #sweepAfter = FROM_START;
  /** Whether the last sweep failed. */
  #hasFailed = false;

  constructor(options: AgendaOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed ?? (() => performance.now());
  }

  /** The number of the last change. A search begins by reading it, and passes it to `put`. */
  get changes(): number {
    return this.#changes;
  }

  /** Notes that teams may have work that is due now. Null: any team may, so a sweep precedes the next search. */
  note(teams: readonly string[] | null): void {
    this.#changes += 1;
    if (teams === null) this.#sweepAtMs = Number.NEGATIVE_INFINITY;
    const now = this.#options.now();
    for (const teamId of teams ?? []) {
      const { at = now, search = 0 } = this.#teams.get(teamId) ?? {};
      this.#teams.set(teamId, { at: Math.min(now, at), change: this.#changes, search });
    }
  }

  /**
   * Notes when a team is next due, as a search of the team has found (null: nothing is waiting). Ignored if the team was
   * noted after the search began.
   *
   * @param since `changes` before the search
   */
  put({ teamId, at, since }: { teamId: string; at: number | null; since: number }): void {
    this.#searches += 1;
    this.#put(teamId, at, since, this.#searches);
  }

  #put(teamId: string, at: number | null, since: number, search?: number): void {
    const known = this.#teams.get(teamId);
    if ((known?.change ?? 0) > since) {
      if (known !== undefined && search !== undefined) known.search = search;
    } else if (at === null) this.#teams.delete(teamId);
    else this.#teams.set(teamId, { at, change: since, search: search ?? known?.search ?? 0 });
  }

  /**
   * The teams that may have due work: first those that no search has found due, the longest due first, and then the
   * others, the longest ago searched first. So no team waits for teams that stay due. Sweeps first if it is time to.
   */
  async due(): Promise<DueTeam[]> {
    const due = (await this.all()).filter(({ at }) => this.#isDue(at));
    const searched = ({ teamId }: DueTeam) => this.#teams.get(teamId)?.search ?? 0;
    return due.sort((one, other) => searched(one) - searched(other));
  }

  /**
   * The teams that may have work, now or later; those that are due first come first. Work that is due in more than a
   * minute may be missing. Sweeps first if it is time to.
   */
  async all(): Promise<DueTeam[]> {
    await this.#upToDate();
    return Array.from(this.#teams, ([teamId, { at }]) => ({ teamId, at })).sort(
      (one, other) => one.at - other.at,
    );
  }

  #isDue(at: number): boolean {
    const now = this.#options.now();
    return at <= now || at > now + this.#options.longestWaitMs;
  }

  /** After a failed sweep, work that hints have named does not wait for the next one. */
  async #upToDate(): Promise<void> {
    if (this.#options.isTold() && this.#elapsed() < this.#sweepAtMs) return;
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
    });
    if (this.#hasFailed && this.#teams.size > 0) this.#sweeping.catch(() => undefined);
    else await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { item, longestWaitMs, read, now } = this.#options;
    const since = this.#changes;
    const after = this.#sweepAfter;
    const until = now() + AHEAD_MS;
    // This is set before the agendas are read, because a call of `note` in the meantime asks for another sweep.
    this.#sweepAtMs = this.#elapsed() + SWEEP_EVERY_MS;
    const found = await read({
      item,
      after,
      until,
      beyond: now() + longestWaitMs,
      limit: MAX_SWEPT,
    }).catch((error) => {
      this.#sweepAtMs = Number.NEGATIVE_INFINITY;
      this.#hasFailed = true;
      throw error;
    });
    this.#hasFailed = false;
    const swept = new Map(found.map(({ teamId, at }) => [teamId, at]));
    const isWhole = after === FROM_START && found.length < MAX_SWEPT;
    for (const [teamId, { search }] of this.#teams) {
      // Too many teams stay due. This team is read again with its part of the agenda.
      const isSurplus = search > 0 && this.#teams.size > 2 * MAX_SWEPT;
      if ((isWhole || isSurplus) && !swept.has(teamId)) this.#put(teamId, null, since);
    }
    for (const [teamId, at] of swept) this.#put(teamId, at, since);
    const dated = found.filter(({ at }) => at <= until);
    if (dated.length < MAX_SWEPT) this.#sweepAfter = FROM_START;
    else if (dated.every(({ teamId }) => this.#teams.get(teamId)?.search !== 0)) {
      this.#sweepAfter = dated.at(-1)?.at ?? FROM_START;
    }
  }
}
