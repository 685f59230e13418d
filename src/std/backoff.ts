/** How long to wait before trying again. */

/**
 * Exponential backoff with full jitter: a random share of `baseMs` doubled for each earlier failure, at most
 * `maxMs`. Full jitter spreads retries best (Brooker, "Exponential Backoff And Jitter", 2015).
 *
 * @param failures how many attempts have failed so far, at least 1
 * @param random a number in [0, 1)
 * @returns milliseconds, at least 1
 */
export function fullJitterMs(input: {
  failures: number;
  baseMs: number;
  maxMs: number;
  random: number;
}): number {
  const ceiling = Math.min(input.maxMs, input.baseMs * 2 ** Math.max(0, input.failures - 1));
  return Math.max(1, Math.round(ceiling * input.random));
}
