/** Many that wait for one signal, which has a listener for all of them: taking one of its own away walks past all others. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `action` when the signal is aborted, at once if it is; answers a function that forgets it. */
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
