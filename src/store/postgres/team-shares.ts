/**
 * What one team may hold of the connections: while its rows are locked its calls wait with a connection each, and
 * those of other teams would find none.
 */
import { Problem } from '../../model/error.ts';

/** Who has waited for so long is refused: longer than for a connection, since there are fewer turns. */
const WAIT_MS = 10_000;

interface Share {
  running: number;
  /** Who comes next, in the order in which they came. */
  waiting: Set<() => void>;
}

export class TeamShares {
  readonly #most: number;
  readonly #shares = new Map<string, Share>();

  /** @param most calls of one team that run at once */
  constructor(most: number) {
    this.#most = most;
  }

  /** Runs a call when fewer than `most` of its team run; one of no team at once. */
  async run<Result>(teamId: string | undefined, call: () => Promise<Result>): Promise<Result> {
    if (teamId === undefined) return call();
    const share = this.#shares.get(teamId) ?? { running: 0, waiting: new Set() };
    this.#shares.set(teamId, share);
    if (share.running < this.#most) share.running += 1;
    else await turn(share);
    try {
      return await call();
    } finally {
      this.#giveBack(teamId, share);
    }
  }

  #giveBack(teamId: string, share: Share): void {
    for (const next of share.waiting) {
      share.waiting.delete(next);
      // It runs in the place of the one that has ended.
      next();
      return;
    }
    share.running -= 1;
    if (share.running === 0) this.#shares.delete(teamId);
  }
}

function turn({ waiting }: Share): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      waiting.delete(begin);
      reject(new Problem('database_busy'));
    }, WAIT_MS);
    waiting.add(begin);
  });
}

/** The team that the input of an operation is about, if it is about one. */
export function teamOf(input: unknown): string | undefined {
  const { teamId, held } = (input ?? {}) as { teamId?: unknown; held?: { teamId?: unknown } };
  const team = teamId ?? held?.teamId;
  return typeof team === 'string' ? team : undefined;
}
