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
