/** Divides the time that stopping may take. */
import type { Config } from '../config/config.ts';

/** Reserved for closing everything else after the work under way has ended. */
const MAX_CLOSING_MS = 3_000;

/** In milliseconds: in all, before the port is closed, and for work under way; the rest is for storing its outcome. */
export function stopTimes({
  drainSeconds,
  drainDelaySeconds,
}: Pick<Config, 'drainSeconds' | 'drainDelaySeconds'>): { allMs: number; delayMs: number; workMs: number } {
  const allMs = drainSeconds * 1_000;
  const delayMs = Math.min(drainDelaySeconds * 1_000, allMs / 2);
  return { allMs, delayMs, workMs: allMs - delayMs - Math.min(MAX_CLOSING_MS, (allMs - delayMs) / 2) };
}
