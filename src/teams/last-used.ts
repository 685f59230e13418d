/** Records when keys were last used: noted in memory by every request, written once a minute for all keys. */
import type { Logger } from '../observe/log.ts';
import { Chore } from '../std/chore.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 60_000;
/** Keys written by one statement. */
const KEYS_AT_ONCE = 500;

export class LastUsed {
  readonly #store: Store;
  readonly #chore: Chore;
  /** Times by key id, since the last write. */
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

  /** Notes that a key was used now. */
  note(keyId: string): void {
    this.#noted.set(keyId, this.#store.now());
  }

  /** Writes what was noted. Never rejects. */
  tick(): Promise<void> {
    return this.#chore.tick();
  }

  /** Writes the rest. */
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
      // Notes made meanwhile are newer.
      for (const [id, at] of noted) if (!this.#noted.has(id)) this.#noted.set(id, at);
      throw error;
    }
  }
}
