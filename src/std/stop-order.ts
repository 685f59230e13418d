/** Stops parts of the service in the reverse order of their start, within a time limit. */
import { within } from './clock.ts';

/** A stack of parts to stop. Every part is stopped, even if stopping another part fails. */
export class StopOrder {
  readonly #steps: { name: string; stop: () => unknown }[] = [];
  readonly #running = new Set<string>();
  #stopping: Promise<void> | undefined;

  /** @param name reported if the part does not stop in time */
  push(stop: () => unknown, name = 'work in the background'): void {
    this.#steps.push({ name, stop });
  }

  /** Stops one component of a part. If the component does not stop in time, it is reported under its own name. */
  readonly part = async <Result>(name: string, stop: () => Promise<Result>): Promise<Result> => {
    this.#running.add(name);
    try {
      return await stop();
    } finally {
      this.#running.delete(name);
    }
  };

  /**
   * Stops all parts; the part that was started last is stopped first. Resolves with the names of the parts that did not
   * stop in time, usually none. Rejects with the first error after all parts have been stopped. Calling this method
   * twice is harmless.
   */
  async stop({ withinMs }: { withinMs: number }): Promise<string[]> {
    this.#stopping ??= this.#stopEach();
    await within(withinMs, this.#stopping, () => undefined);
    return [...this.#running];
  }

  async #stopEach(): Promise<void> {
    const failures: unknown[] = [];
    for (const { name, stop } of this.#steps.splice(0).reverse()) {
      await this.part(name, async () => stop()).catch((error) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}

/**
 * The actions of each signal. A signal has only one `abort` listener for all of its actions, because removing one of
 * many listeners would search all of them.
 */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `action` when the signal aborts, or now if the signal is already aborted. Returns a function that removes the
 * action.
 */
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
