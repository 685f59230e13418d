/** Calls that last: whoever makes one must stay authorised to its end, and only so many wait for events. */
import { Problem } from '../../model/error.ts';
import { Poller } from '../../std/chore.ts';
import type { Store } from '../../store/store.ts';
import type { Caller } from '../../teams/keys.ts';

/** Bounds how long after its expiry a key is still served. It reads no database while no key changes. */
const AUTHORISED_LOOK_MS = 600;

/** One call, from `follow` to `end`. */
export interface LongCall {
  /** Aborts with Problem `unauthorized` when the caller's key or session has ended. */
  signal: AbortSignal;
  /**
   * Asks the database itself, for what must not happen after a revocation by whatever process: call it after what is
   * answered was read, and before what is written.
   *
   * @throws Problem `unauthorized` when the caller's key or session has ended
   */
  confirm(): Promise<void>;
  /** Stops following. Calling it twice is harmless. */
  end(): void;
}

interface Followed {
  caller: Caller;
  abort: AbortController;
}

export class LongCalls {
  readonly #store: Pick<Store, 'watch'>;
  readonly #followed = new Set<Followed>();
  readonly #poller: Poller;
  #unwatch: (() => void) | undefined;

  constructor(store: Pick<Store, 'watch'>) {
    this.#store = store;
    this.#poller = new Poller({ everyMs: AUTHORISED_LOOK_MS, random: Math.random, look: () => this.look() });
  }

  follow(caller: Caller): LongCall {
    const one: Followed = { caller, abort: new AbortController() };
    this.#followed.add(one);
    this.#unwatch ??= this.#store.watch(({ keys }) => keys && this.#poller.nudge());
    this.#poller.start();
    return {
      signal: one.abort.signal,
      async confirm() {
        if (!(await caller.isStillGood({ asksDatabase: true }))) throw ended();
      },
      end: () => {
        this.#followed.delete(one);
        if (this.#followed.size === 0) this.#rest();
      },
    };
  }

  /** Ends the calls of everybody who is no longer authorised. */
  async look(): Promise<void> {
    for (const { caller, abort } of [...this.#followed]) {
      // While the database cannot be asked, nobody is ended: what is answered or written then is confirmed first.
      const isGood = await caller.isStillGood().catch(() => true);
      if (!isGood) abort.abort(ended());
    }
  }

  #rest(): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
    void this.#poller.stop();
  }
}

function ended(): Problem {
  return new Problem('unauthorized', {
    sentence: 'Unauthorized: this API key was revoked, or has expired, while the call was under way',
  });
}

const MAX_WAITING = 200;
const MAX_OF_TEAM = 20;
/** How often to look anyway: commits of other processes may wake nobody. */
const LOOK_MS = 1_000;

interface Waiting {
  teamId: string;
  after: number;
  end(): void;
}

/** However many calls wait, a commit costs one read for each of their teams. */
export class EventWaits {
  readonly #store: Pick<Store, 'events' | 'watch'>;
  readonly #waiting = new Set<Waiting>();
  readonly #poller: Poller;
  #unwatch: (() => void) | undefined;
  #closed = false;

  constructor(store: Pick<Store, 'events' | 'watch'>) {
    this.#store = store;
    this.#poller = new Poller({ everyMs: LOOK_MS, random: Math.random, look: () => this.#look() });
  }

  /**
   * Resolves when the team has an event after this sequence, after `ms`, when the signal aborts, or at `close`.
   *
   * @throws Problem `overloaded` when too many wait already
   */
  async until(input: { teamId: string; after: number; ms: number; signal: AbortSignal }): Promise<void> {
    const { teamId, after, ms, signal } = input;
    if (this.#closed || signal.aborted || ms === 0) return;
    const ofTeam = [...this.#waiting].filter((one) => one.teamId === teamId).length;
    if (ofTeam >= MAX_OF_TEAM || this.#waiting.size >= MAX_WAITING) {
      throw new Problem('overloaded', {
        sentence: `As many calls wait for events as may: ${MAX_OF_TEAM} of a team, ${MAX_WAITING} in all. Ask without \`wait\`, or end one of them`,
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
      this.#begin();
    });
    if (this.#waiting.size === 0) await this.#rest();
  }

  /** Ends all waits, and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const one of this.#waiting) one.end();
    await this.#rest();
  }

  #begin(): void {
    this.#unwatch ??= this.#store.watch(() => this.#poller.nudge());
    this.#poller.start();
    // A commit between the caller's own look and now has woken nobody.
    this.#poller.nudge();
  }

  async #rest(): Promise<void> {
    this.#unwatch?.();
    this.#unwatch = undefined;
    await this.#poller.stop();
    if (this.#waiting.size > 0) this.#begin();
  }

  async #look(): Promise<void> {
    for (const teamId of new Set([...this.#waiting].map((one) => one.teamId))) {
      // When the read fails they keep waiting: the caller's own look, at the end, reports the error.
      const newest = await this.#store.events.newestSequence({ teamId }).catch(() => 0);
      for (const one of this.#waiting) if (one.teamId === teamId && one.after < newest) one.end();
    }
  }
}
