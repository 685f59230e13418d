/** Queues the lanes that commits have named, each once however often it was named, and loads them a few at a time. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LaneName } from '../store/operations/lanes.ts';

/** Lanes that may be queued; with more, a look over all lanes is cheaper. */
const MAX_QUEUED = 1_000;
const AT_ONCE = 8;

export class LaneHints {
  readonly #look: (name: LaneName) => Promise<void>;
  readonly #queued = new Map<string, LaneName>();
  #looking: Promise<void> | undefined;
  #running = false;

  /** @param look must not reject */
  constructor(look: (name: LaneName) => Promise<void>) {
    this.#look = look;
  }

  start(): void {
    this.#running = true;
  }

  /** Resolves when the looks under way have ended. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#looking;
    this.#queued.clear();
  }

  /** Queues all of them and returns true, or none and returns false when they are too many. */
  add(names: readonly LaneName[]): boolean {
    if (this.#queued.size + names.length > MAX_QUEUED) return false;
    for (const name of names) this.#queued.set(name.webhookId, name);
    this.#looking ??= this.#run().finally(() => {
      this.#looking = undefined;
    });
    return true;
  }

  async #run(): Promise<void> {
    while (this.#queued.size > 0 && this.#running) {
      const some = [...this.#queued.values()].slice(0, AT_ONCE);
      for (const { webhookId } of some) this.#queued.delete(webhookId);
      await Promise.all(some.map((name) => this.#look(name)));
      await nextTurn();
    }
  }
}
