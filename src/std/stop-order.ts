/** Stops what was started, in reverse order and within a time; every step is tried, even when others fail. */
import { within } from './clock.ts';

export class StopOrder {
  readonly #steps: { name: string; stop: () => unknown }[] = [];
  readonly #underWay = new Set<string>();
  #stopping: Promise<void> | undefined;

  /** @param name how it is named when it does not end in time */
  push(stop: () => unknown, name = 'work in the background'): void {
    this.#steps.push({ name, stop });
  }

  /** Stops a part of a step under a name of its own. */
  readonly part = async <Result>(name: string, stop: () => Promise<Result>): Promise<Result> => {
    this.#underWay.add(name);
    try {
      return await stop();
    } finally {
      this.#underWay.delete(name);
    }
  };

  /**
   * Stops everything, the last one first. Resolves with the names of what had not ended when the time was over, usually
   * none; rejects with the first failure when all have been tried. Calling it twice is harmless.
   */
  async stop({ withinMs }: { withinMs: number }): Promise<string[]> {
    this.#stopping ??= this.#stopEach();
    await within(withinMs, this.#stopping, () => undefined);
    return [...this.#underWay];
  }

  async #stopEach(): Promise<void> {
    const failures: unknown[] = [];
    for (const { name, stop } of this.#steps.splice(0).reverse()) {
      await this.part(name, async () => stop()).catch((error) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** One `abort` listener for many waiters: with a listener each, removing one would search through all the others. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `action` when the signal is aborted, at once if it already is; returns a function that takes the action away. */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  if (signal.aborted) {
    action();
    return () => undefined;
  }
  const actions = waiting.get(signal) ?? new Set<() => void>();
  if (!waiting.has(signal)) {
    waiting.set(signal, actions);
    signal.addEventListener('abort', () => {
      for (const each of actions) each();
    });
  }
  actions.add(action);
  return () => actions.delete(action);
}
