/** How stopping spends the time that it has. */
import type { Config } from '../config/config.ts';

/** Of the time that stopping may take so much is kept for what follows when work has come to rest. */
const MAX_CLOSING_MS = 3_000;

/** Milliseconds: in all, until the port is closed, on work under way; the rest is for writing down what came of it. */
export function stopTimes({
  drainSeconds,
  drainDelaySeconds,
}: Pick<Config, 'drainSeconds' | 'drainDelaySeconds'>): { allMs: number; delayMs: number; workMs: number } {
  const allMs = drainSeconds * 1_000;
  const delayMs = Math.min(drainDelaySeconds * 1_000, allMs / 2);
  return { allMs, delayMs, workMs: allMs - delayMs - Math.min(MAX_CLOSING_MS, (allMs - delayMs) / 2) };
}
