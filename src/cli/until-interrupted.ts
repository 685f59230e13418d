/** Ctrl-C and SIGTERM while a command waits or works. */

/**
 * A signal that is aborted by the first SIGINT or SIGTERM; the second one ends the process at once.
 *
 * @param reason what the signal is aborted with
 * @returns `clear` must be called at the end: until then neither signal ends the process
 */
export function untilInterrupted(reason?: Error): { signal: AbortSignal; clear(): void } {
  const abort = new AbortController();
  const end = () => {
    if (abort.signal.aborted) process.exit(1);
    abort.abort(reason);
  };
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, end);
  return {
    signal: abort.signal,
    clear: () => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, end);
    },
  };
}
