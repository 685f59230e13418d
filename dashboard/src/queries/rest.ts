/** How long is waited between two refetches of the same: large answers do not keep the service busy. */

/** The pause after a refetch, as a multiple of how long it took; the command line has the same. */
const REST = 5;

/** Milliseconds from the end of a refetch to the next one. */
export function restMs({ tookMs, leastMs }: { tookMs: number; leastMs: number }): number {
  return Math.max(leastMs, tookMs * REST);
}
