/** Long calls: their callers must stay authorized until the end, and the number of calls waiting for events is limited. */
import { Problem } from '../../model/error.ts';
import { Poller } from '../../std/chore.ts';
import type { Store } from '../../store/store.ts';
import type { Caller } from '../../teams/keys.ts';

/** How often expiries are checked. A check does not read the database unless a key has changed. */
const AUTHORIZED_LOOK_MS = 600;

/** One call, from `follow` to `end`. */
export interface LongCall {
  /** Aborts with Problem `unauthorized` when the caller's key or session ends. */
  signal: AbortSignal;
  /**
   * Checks the key in the database, so that nothing is returned or written after a revocation by any process. Call it
   * after reading the response, or before writing.
   *
   * @throws Problem `unauthorized` if the caller's key or session has ended
   */
  confirm(): Promise<void>;
  /** Stops following. Calling it twice is harmless. */
  end(): void;
}

interface Followed {
  caller: Caller;
  abort: AbortController;
}

/** Aborts long calls when their caller's key or session ends. */
export class LongCalls {
  readonly #followed = new Set<Followed>();
  readonly #poller: Poller;

  constructor(store: Pick<Store, 'watch'>) {
    this.#poller = new Poller({
      everyMs: AUTHORIZED_LOOK_MS,
      random: Math.random,
      look: () => this.look(),
      watch: (poller) => store.watch(({ keys }) => keys && poller.nudge()),
    });
  }

  follow(caller: Caller): LongCall {
    const one: Followed = { caller, abort: new AbortController() };
    this.#followed.add(one);
    this.#poller.start();
    return {
      signal: one.abort.signal,
      async confirm() {
        if (!(await caller.isStillGood({ asksDatabase: true }))) throw ended();
      },
      end: () => {
        this.#followed.delete(one);
        if (this.#followed.size === 0) void this.#poller.stop();
      },
    };
  }

  /** Aborts the calls whose callers are no longer authorized. */
  async look(): Promise<void> {
    for (const { caller, abort } of [...this.#followed]) {
      // If the database is unavailable, no call is aborted: `confirm` still protects what is returned or written.
      const isGood = await caller.isStillGood().catch(() => true);
      if (!isGood) abort.abort(ended());
    }
  }
}

function ended(): Problem {
  return new Problem('unauthorized', {
    sentence: 'Unauthorized: this API key was revoked or expired during the call',
  });
}

const MAX_WAITING = 200;
const MAX_OF_TEAM = 20;
/** How often the database is read when no commit was reported. Commits of other processes may go unreported. */
const LOOK_MS = 1_000;

interface Waiting {
  teamId: string;
  after: number;
  end(): void;
}

/** Calls that wait for events. A commit costs one read per waiting team, independent of the number of calls. */
export class EventWaits {
  readonly #store: Pick<Store, 'events' | 'watch'>;
  readonly #waiting = new Set<Waiting>();
  readonly #poller: Poller;
  #closed = false;

  constructor(store: Pick<Store, 'events' | 'watch'>) {
    this.#store = store;
    this.#poller = new Poller({
      everyMs: LOOK_MS,
      random: Math.random,
      look: () => this.#look(),
      watch: (poller) => store.watch(() => poller.nudge()),
    });
  }

  /**
   * Resolves when the team has an event after this sequence, after `ms`, when the signal aborts, or at `close`.
   *
   * @throws Problem `overloaded` if too many calls wait already
   */
  async until(input: { teamId: string; after: number; ms: number; signal: AbortSignal }): Promise<void> {
    const { teamId, after, ms, signal } = input;
    if (this.#closed || signal.aborted || ms === 0) return;
    const ofTeam = [...this.#waiting].filter((one) => one.teamId === teamId).length;
    if (ofTeam >= MAX_OF_TEAM || this.#waiting.size >= MAX_WAITING) {
      throw new Problem('overloaded', {
        sentence: `Too many calls are waiting for events: at most ${MAX_OF_TEAM} per team and ${MAX_WAITING} in total. Call without \`wait\`, or end another call`,
        headers: { 'retry-after': '5' },
      });
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => one.end(), ms);
      const one: Waiting = {
        teamId,
        after,
        end: () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', one.end);
          this.#waiting.delete(one);
          resolve();
        },
      };
      signal.addEventListener('abort', one.end);
      this.#waiting.add(one);
      this.#poller.start();
      // A commit between the caller's last read and now may have gone unnoticed, so the poller is nudged.
      this.#poller.nudge();
    });
    if (this.#waiting.size === 0) await this.#poller.stop();
  }

  /** Ends all waits, and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const one of this.#waiting) one.end();
    await this.#poller.stop();
  }

  async #look(): Promise<void> {
    for (const teamId of new Set([...this.#waiting].map((one) => one.teamId))) {
      // If the read fails, the calls keep waiting. Each caller reads again at the end and reports the error.
      const newest = await this.#store.events.newestSequence({ teamId }).catch(() => 0);
      for (const one of this.#waiting) if (one.teamId === teamId && one.after < newest) one.end();
    }
  }
}
