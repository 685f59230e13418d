/**
 * Populations that live: from day to day some rows come, some go and some change, as at a real source. The same seed
 * always makes the same days.
 */
import { seeded } from '../seeded.ts';

export type Row = Record<string, unknown> & { id: string };

/** Random values. */
export class Dice {
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seeded(seed);
  }

  /** A whole number from 0 to `bound` - 1. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** A whole number, both bounds included. */
  whole(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<One>(list: readonly One[]): One {
    return list[this.below(list.length)] as One;
  }

  /** A normal deviate with a standard deviation of 1. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }

  /** A price with two digits: most are near the median, a few are many times as high. */
  price(median: number): number {
    return Math.round(median * Math.exp(0.7 * this.normal()) * 100) / 100;
  }
}

/** How one kind of source lives. */
export interface Kind {
  /** Also the id of its workflow. */
  id: string;
  /** Usual number of rows. */
  size: number;
  /** Share of the rows that are replaced by others each day. */
  churn: number;
  /** Share of the usual rows that are there on this day: fewer on weekends, more in a season. Default: 1. */
  rhythm?(day: number): number;
  /** Makes a row. `serial` differs for all rows of a population. */
  make(dice: Dice, serial: number, day: number): Row;
  /** Changes a row as a day does. */
  live(row: Row, dice: Dice, day: number): void;
}

/** The usual number of rows of a day varies by about this share. */
const JITTER = 0.005;

export class Population {
  readonly #dice: Dice;
  readonly #kind: Kind;
  #serial = 0;
  #day = 0;
  rows: Row[] = [];

  constructor(kind: Kind, seed: number) {
    this.#kind = kind;
    this.#dice = new Dice(seed);
    this.nextDay();
  }

  /** Returns the rows of the next day. The caller must not change them. */
  nextDay(): Row[] {
    const { size, churn, rhythm, make, live } = this.#kind;
    const dice = this.#dice;
    this.#day += 1;
    const day = this.#day;
    const kept = this.rows.filter(() => !dice.chance(churn));
    for (const row of kept) live(row, dice, day);
    const wanted = Math.round(size * (rhythm?.(day) ?? 1) * (1 + JITTER * dice.normal()));
    while (kept.length > wanted) kept.splice(dice.whole(0, kept.length - 1), 1);
    while (kept.length < wanted) {
      this.#serial += 1;
      kept.push(make(dice, this.#serial, day));
    }
    this.rows = kept;
    return kept;
  }
}

const DAY_MS = 86_400_000;
const FIRST_DAY = Date.UTC(2026, 0, 5);

/** The date of a day, `2026-01-05` for the first, a Monday. */
export function dateOf(day: number): string {
  return timeOf(day).slice(0, 10);
}

/** A time on a day, in ISO 8601. */
export function timeOf(day: number, hour = 0): string {
  return new Date(FIRST_DAY + (day - 1) * DAY_MS + hour * 3_600_000).toISOString();
}

/** A rhythm with fewer rows on Saturdays and Sundays. */
export function fewerOnWeekends(less: number): (day: number) => number {
  return (day) => (day % 7 === 6 || day % 7 === 0 ? 1 - less : 1);
}
