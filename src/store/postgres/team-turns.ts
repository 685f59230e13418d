/**
 * Turns of teams at the connections of the pool. While rows of a team are locked, each of its calls waits with a
 * connection; without turns the calls of other teams would find none.
 */
import { Problem } from '../../model/error.ts';
import { FairPlaces, NoPlaceError } from '../../std/fair-places.ts';

/** A call that has waited this long is refused; longer than for a connection, since there are fewer turns. */
const WAIT_MS = 10_000;

export class TeamTurns {
  readonly #places: FairPlaces;

  /** @param connections of the pool */
  constructor(connections: number) {
    this.#places = new FairPlaces({ places: connections, patienceMs: WAIT_MS });
  }

  /** Runs a call in its team's turn; a call of no team runs at once. @throws Problem `database_busy` */
  async run<Result>(
    teamId: string | undefined,
    call: () => Promise<Result>,
    options: { ahead?: boolean } = {},
  ): Promise<Result> {
    if (teamId === undefined) return call();
    const leave = await this.#places.take(teamId, options).catch((error: unknown) => {
      throw error instanceof NoPlaceError ? new Problem('database_busy', { cause: error }) : error;
    });
    try {
      return await call();
    } finally {
      leave();
    }
  }
}
