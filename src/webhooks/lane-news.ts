/** The lanes that commits have named, until they are looked at: each once, however often it was named. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LaneName } from '../store/webhook-operations.ts';

/** Named and not looked at yet; beyond it somebody has to look at all lanes. */
const MAX_NAMED = 1_000;
const AT_ONCE = 8;

export class LaneNews {
  readonly #look: (name: LaneName) => Promise<void>;
  readonly #named = new Map<string, LaneName>();
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
    this.#named.clear();
  }

  /** Takes them all, or answers that they are too many. */
  add(names: readonly LaneName[]): boolean {
    if (this.#named.size + names.length > MAX_NAMED) return false;
    for (const name of names) this.#named.set(name.webhookId, name);
    this.#looking ??= this.#run().finally(() => {
      this.#looking = undefined;
    });
    return true;
  }

  async #run(): Promise<void> {
    while (this.#named.size > 0 && this.#running) {
      const some = [...this.#named.values()].slice(0, AT_ONCE);
      for (const { webhookId } of some) this.#named.delete(webhookId);
      await Promise.all(some.map((name) => this.#look(name)));
      await nextTurn();
    }
  }
}
