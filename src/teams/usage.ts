/** Records when keys were last used (written once a minute), and counts the usage of teams in the background. */
import { USAGE_GRACE_MS } from '../model/usage.ts';
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { forDueTeams } from '../store/due-teams.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 60_000;
/** Number of keys per statement. */
const KEYS_AT_ONCE = 500;

export class LastUsed {
  readonly #store: Store;
  readonly #chore: Chore;
  /** The last use of each key since the last write, by key id. */
  #noted = new Map<string, number>();

  constructor({ store, log, random }: { store: Store; log: Logger; random: () => number }) {
    this.#store = store;
    this.#chore = new Chore({
      everyMs: EVERY_MS,
      random,
      work: () => this.#write(),
      failed: (err) => log.warn({ err }, 'keys.use_not_written'),
    });
  }

  start(): void {
    this.#chore.start();
  }

  note(keyId: string): void {
    this.#noted.set(keyId, this.#store.now());
  }

  /** Writes the recorded times. Never rejects. */
  tick(): Promise<void> {
    return this.#chore.tick();
  }

  /** Writes the remaining times. */
  async stop(): Promise<void> {
    await this.#chore.stop();
    await this.#chore.tick();
  }

  async #write(): Promise<void> {
    const noted = this.#noted;
    this.#noted = new Map();
    const keys = [...noted].map(([id, at]) => ({ id, at }));
    try {
      for (let from = 0; from < keys.length; from += KEYS_AT_ONCE) {
        await this.#store.keys.used({ keys: keys.slice(from, from + KEYS_AT_ONCE) });
      }
    } catch (error) {
      // If a key was used again during the failed write, its newer time is kept.
      for (const [id, at] of noted) if (!this.#noted.has(id)) this.#noted.set(id, at);
      throw error;
    }
  }
}

const COUNT_EVERY_MS = 15_000;
const STEPS = { first: 100, max: 2_000 };

/** Counts the usage of the teams that have been active since it was last counted. */
export function usageCounting(deps: ChoreDeps): Chore {
  const { usage } = deps.store;
  return choreOnOneNode({
    ...deps,
    name: 'usage.count',
    everyMs: COUNT_EVERY_MS,
    failed: 'usage.not_counted',
    work: (signal) =>
      forDueTeams({ ...deps, item: 'usage', failed: 'usage.not_counted', signal }, (teamId) =>
        inSteps((limit) => usage.count({ teamId, graceMs: USAGE_GRACE_MS, limit }), STEPS, signal),
      ),
  });
}
