/** A random order of workflows, the same in every run. In sequence, neighbors would share pages of the database. */
import { seeded } from '../test/support/seeded.ts';

const SEED = 22;

/**
 * Returns a function from 0, 1, 2 … to the same numbers in random order: first those below `span`, then those below
 * twice that, and so on.
 */
export function shuffled(span: number): (n: number) => number {
  const random = seeded(SEED);
  const order = Uint32Array.from({ length: span }, (_, n) => n);
  for (let left = span; left > 1; left--) {
    const from = Math.floor(random() * left);
    [order[left - 1], order[from]] = [order[from] as number, order[left - 1] as number];
  }
  return (n) => n - (n % span) + (order[n % span] as number);
}
