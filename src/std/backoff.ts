/** Computes how long to wait before a retry. */

/**
 * Exponential backoff with full jitter: a random share of `baseMs`, which doubles with each further failure up to
 * `maxMs`. Full jitter spreads retries best (Brooker, "Exponential Backoff And Jitter", 2015).
 *
 * @param input.failures number of failed attempts, at least 1
 * @param input.random a number in [0, 1)
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
