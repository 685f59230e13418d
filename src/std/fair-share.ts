/**
 * The rule by which teams share a bounded number of places, whatever these are: connections, requests, look-ups.
 *
 * A team that holds none gets one while any is free. A team that holds some gets another only if it then holds at most
 * three times as many as remain free. So a team alone may hold three quarters of the places; the more teams ask, the
 * less each may hold, and something always remains free for the next. This is the rule of dynamic thresholds by which
 * switches share their buffers (Choudhury and Hahne, 1998): it needs no reservation per team and no list of teams.
 */

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
