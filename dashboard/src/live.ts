/**
 * What is on the screen stays true: the stream names what has changed, and what shows it is read again.
 *
 * ```
 *  paused ──one looks at the tab, or resumes──▶ reconnecting ──hello──▶ live
 *     ▲                                          ▲     │                 │
 *     └───────────the tab is hidden, or one pauses─────┴────broken off───┘
 * ```
 */
import { Unauthorized } from 'flowhook-client';
import { useEffect, useSyncExternalStore } from 'react';
import { flowhook } from './client.ts';
import { lookAtSession } from './queries/query-client.ts';
import { readAgain, readFailedAgain } from './queries/read-again.ts';

export type Connection = 'live' | 'reconnecting' | 'paused';

/** The service says something every 15 s: after this long without a word the connection is dead. */
const SILENCE_MS = 40_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

class Live {
  #connection: Connection = 'reconnecting';
  /** The place to come back to. */
  #sequence: number | undefined;
  #abort: AbortController | undefined;
  #isPausedByHand = false;
  readonly #listeners = new Set<() => void>();

  get connection(): Connection {
    return this.#connection;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Listens for as long as somebody looks. Starting twice is harmless. */
  readonly start = (): void => {
    if (this.#abort !== undefined || this.#isPausedByHand || document.hidden) return;
    const abort = new AbortController();
    this.#abort = abort;
    void this.#listen(abort.signal);
  };

  readonly stop = (): void => {
    this.#abort?.abort();
    this.#abort = undefined;
    this.#is('paused');
  };

  /** Until one resumes: what is on the screen stays as it is. */
  readonly toggle = (): void => {
    this.#isPausedByHand = !this.#isPausedByHand;
    if (this.#isPausedByHand) this.stop();
    else this.start();
  };

  /** Does not wait for the next try. */
  readonly again = (): void => {
    this.stop();
    this.start();
  };

  async #listen(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      this.#is('reconnecting');
      const isFirst = this.#sequence === undefined;
      const onOpen = (sequence: number) => {
        failures = 0;
        this.#sequence = sequence;
        this.#is('live');
        readFailedAgain();
        // While the tab was hidden, another one may have signed in as somebody else.
        if (!isFirst) lookAtSession();
        // What was read before the stream began may have changed in between.
        if (isFirst) readAgain({ kind: null, ids: null });
      };
      try {
        const news = flowhook.stream({ after: this.#sequence, onOpen, signal, timeoutMs: SILENCE_MS });
        for await (const item of news) {
          this.#sequence = item.sequence ?? this.#sequence;
          readAgain(item);
        }
      } catch (error) {
        // Broken off, refused or unreachable: one tries again, unless the session has ended.
        if (error instanceof Unauthorized) lookAtSession();
      }
      if (!signal.aborted) await pause(waitMs(failures), signal);
    }
  }

  #is(connection: Connection): void {
    if (this.#connection === connection) return;
    this.#connection = connection;
    for (const listener of this.#listeners) listener();
  }
}

export const live = new Live();

/** Listens while the page is shown and the tab is looked at. */
export function useLive(): void {
  useEffect(() => {
    const look = () => (document.hidden ? live.stop() : live.start());
    look();
    document.addEventListener('visibilitychange', look);
    addEventListener('online', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      removeEventListener('online', look);
      live.stop();
    };
  }, []);
}

/** How the page hears of changes at the moment. */
export function useConnection(): Connection {
  return useSyncExternalStore(live.subscribe, () => live.connection);
}

/** Doubled with each failure, and a random share of it: not all tabs come back at once after a restart. */
function waitMs(failures: number): number {
  return Math.random() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
}

/** Ends early with the signal, and when the machine is on a network again. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      removeEventListener('online', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    addEventListener('online', end);
  });
}
