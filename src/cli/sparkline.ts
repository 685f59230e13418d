/** Draws numbers as a line of small bars. */

const BARS = '▁▂▃▄▅▆▇█';

/**
 * One bar per number, from the oldest to the newest. Null, where there is no number, is a space.
 *
 * @param range the values of the lowest and of the highest bar
 */
export function sparkline(
  numbers: readonly (number | null)[],
  { least, most }: { least: number; most: number },
): string {
  return numbers
    .map((number) => {
      if (number === null) return ' ';
      const share = most === least ? 1 : (number - least) / (most - least);
      return BARS[Math.min(BARS.length - 1, Math.max(0, Math.floor(share * BARS.length)))];
    })
    .join('');
}
