/** Ctrl-C, SIGTERM and the time limit of a command that waits or works. */
import { constants } from 'node:os';

/** What ended the last command early, as an exit code. */
let endedBy: number | undefined;

const TIMED_OUT = 7;

export interface Patience {
  /** What the signal is aborted with. */
  reason?: Error;
  /** How long the command may take, in milliseconds. */
  withinMs?: number | undefined;
  /** Ctrl-C is how the command ends, and no failure. */
  isEnd?: boolean;
}

/**
 * A signal that is aborted by the first SIGINT or SIGTERM, or when the time is over; the next SIGINT or SIGTERM ends the
 * process at once. Unless `isEnd`, the exit code is then 130, 143 or 7, whatever the command sets: see `endedEarly`.
 *
 * @returns `clear` must be called at the end: until then neither signal ends the process
 */
export function untilInterrupted({ reason, withinMs, isEnd = false }: Patience = {}): {
  signal: AbortSignal;
  clear(): void;
} {
  const abort = new AbortController();
  const end = (signal: NodeJS.Signals) => {
    const code = 128 + constants.signals[signal];
    if (abort.signal.aborted) process.exit(code);
    if (!isEnd) endedBy = code;
    abort.abort(reason);
  };
  const names = ['SIGINT', 'SIGTERM'] as const;
  for (const name of names) process.on(name, end);
  const timer = setTimeout(() => {
    endedBy = TIMED_OUT;
    abort.abort(reason);
  }, withinMs ?? 0);
  if (withinMs === undefined) clearTimeout(timer);
  return {
    signal: abort.signal,
    clear: () => {
      clearTimeout(timer);
      for (const name of names) process.off(name, end);
    },
  };
}

/** The exit code for what ended the command early, if anything did; the next call returns undefined. */
export function endedEarly(): number | undefined {
  const code = endedBy;
  endedBy = undefined;
  return code;
}
