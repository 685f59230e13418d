/**
 * Limits how many connections of the pool one team holds. While rows of a team are locked, each of its calls waits with
 * a connection; without a limit the calls of other teams would find none.
 */
import { Problem } from '../../model/error.ts';

/** A call that has waited this long is refused; longer than for a connection, since there are fewer turns. */
const WAIT_MS = 10_000;

interface Share {
  running: number;
  /** Resolves each waiting call, oldest first. */
  waiting: Set<() => void>;
}

export class TeamShares {
  readonly #most: number;
  readonly #shares = new Map<string, Share>();

  /** @param most calls of one team that run at once */
  constructor(most: number) {
    this.#most = most;
  }

  /** Runs a call as soon as fewer than `most` of its team run; a call of no team runs at once. */
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
      // It takes the place of the call that has ended, so `running` stays the same.
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

/** The team in the input of an operation, if there is one. */
export function teamOf(input: unknown): string | undefined {
  const { teamId, held } = (input ?? {}) as { teamId?: unknown; held?: { teamId?: unknown } };
  const team = teamId ?? held?.teamId;
  return typeof team === 'string' ? team : undefined;
}
