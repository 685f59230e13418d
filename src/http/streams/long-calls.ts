/**
 * Calls that last (long polls, streams, pushes): whoever makes one must stay authorised to its end. One look over all of
 * them, whenever keys or sessions change and every 600 ms for those that expire, ends the calls of whoever is not.
 */
import { Problem } from '../../model/error.ts';
import { Poller } from '../../std/chore.ts';
import type { Store } from '../../store/store.ts';
import type { Caller } from '../../teams/keys.ts';

/** Bounds how long after its expiry a key is still served. It reads no database while no key changes. */
const LOOK_MS = 600;

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
    this.#poller = new Poller({ everyMs: LOOK_MS, random: Math.random, look: () => this.look() });
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
