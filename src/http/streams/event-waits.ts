/** Long polling for the next event of a team: a bounded number of waiting calls, woken by commits. */
import { Problem } from '../../model/error.ts';
import { Poller } from '../../std/chore.ts';
import type { Store } from '../../store/store.ts';

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
