/**
 * Turns at the event loop: so many requests begin in each turn of it, and teams take turns. Without this a team that
 * keeps hundreds of connections busy would have all its requests begun, one after the other, before another team's one.
 *
 *     request ──▶ its key is known ──▶ line of its team ──▶ begun, some in each turn of the event loop
 *         └─────▶ too many of its team ──▶ line of its team ──▶ 503: refusing costs time as well
 */
import { FairPlaces } from '../../std/fair-share.ts';

/** Requests that begin in one turn: few enough that a turn is short, and of one team alone three quarters of them. */
const PER_TURN = 16;

export class RequestTurns {
  readonly #places = new FairPlaces({ places: PER_TURN });
  /** What gives the places of this turn back. */
  #begun: (() => void)[] = [];

  /** Resolves when a request of the team may begin. */
  async take(team: string): Promise<void> {
    const leave = await this.#places.take(team);
    if (this.#begun.push(leave) > 1) return;
    setImmediate(() => {
      const begun = this.#begun;
      this.#begun = [];
      for (const one of begun) one();
    });
  }
}
