/**
 * Live updates: the event stream names what changed, and the queries on the screen that show it are refetched.
 *
 * ```
 *  paused ──tab is visible, or user resumes──▶ reconnecting ──hello──▶ live
 *     ▲                                         │        ▲               │
 *     ├─────────tab is hidden, or user pauses───┘        └──disconnected─┤
 *     └─────────tab is hidden, or user pauses────────────────────────────┘
 * ```
 */

import { useEffect } from 'react';
import { Unauthorized } from '../../client/src/flowhook-client.ts';
import { flowhook } from './client.ts';
import { Store } from './parts/store.ts';
import { checkSession } from './queries/list.ts';
import { readAgain, readFailedAgain } from './queries/read-again.ts';

export type Connection = 'live' | 'reconnecting' | 'paused';

/** The service sends a heartbeat every 15 s; a connection that is silent for this long is dead. */
const SILENCE_MS = 40_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

class Live {
  readonly connection = new Store<Connection>('reconnecting');
  /** The position to resume the stream from. */
  #sequence: number | undefined;
  #abort: AbortController | undefined;
  #isPausedByHand = false;

  /** Listens while the tab is visible. */
  readonly start = (): void => {
    if (this.#abort !== undefined || this.#isPausedByHand || document.hidden) return;
    const abort = new AbortController();
    this.#abort = abort;
    void this.#listen(abort.signal);
  };

  readonly stop = (): void => {
    this.#abort?.abort();
    this.#abort = undefined;
    this.connection.set('paused');
  };

  /** Pauses or resumes on request of the user. A pause lasts even when the tab becomes visible again. */
  readonly toggle = (): void => {
    this.#isPausedByHand = !this.#isPausedByHand;
    if (this.#isPausedByHand) this.stop();
    else this.start();
  };

  /** Reconnects without waiting for the next attempt. */
  readonly reconnect = (): void => {
    this.stop();
    this.start();
  };

  async #listen(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      this.connection.set('reconnecting');
      const isFirst = this.#sequence === undefined;
      const onOpen = (sequence: number) => {
        failures = 0;
        this.#sequence = sequence;
        this.connection.set('live');
        readFailedAgain();
        // Data fetched before the stream opened may be stale. After a reconnect, another tab may have signed in with another key.
        if (isFirst) readAgain({ kind: null, ids: null });
        else checkSession();
      };
      try {
        const news = flowhook.stream({ after: this.#sequence, onOpen, signal, timeoutMs: SILENCE_MS });
        for await (const item of news) {
          this.#sequence = item.sequence ?? this.#sequence;
          readAgain(item);
        }
      } catch (error) {
        // After a lost, rejected or failed connection this retries, unless the session has ended.
        if (error instanceof Unauthorized) checkSession();
      }
      if (!signal.aborted) await pause(waitMs(failures), signal);
    }
  }
}

export const live = new Live();

/** Listens while the component is mounted and the tab is visible. */
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

/** Exponential backoff with full jitter, so that tabs do not all reconnect at the same moment after a restart. */
function waitMs(failures: number): number {
  return Math.random() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
}

/** Ends early when the signal aborts or the browser is online again. */
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
