/**
 * Does something with one item after the other, of any number of teams. One that fails, because something has its rows
 * locked, stops none of the others: not now, and not the next time, when it comes last.
 */

/** After so many failures of one team the rest of it is left for the next time: what is locked may be the team. */
const MAX_FAILURES = 3;
/** Failures that are remembered. */
const MAX_REMEMBERED = 1_000;

export class OneByOne<Item> {
  readonly #nameOf: (item: Item) => { teamId: string; key: string };
  readonly #failed: (error: unknown, item: Item) => void;
  readonly #remembered = new Set<string>();

  /** @param input.failed told of each failure */
  constructor(input: {
    nameOf: (item: Item) => { teamId: string; key: string };
    failed: (error: unknown, item: Item) => void;
  }) {
    this.#nameOf = input.nameOf;
    this.#failed = input.failed;
  }

  /** Never rejects. Answers those that failed or were left. */
  async each(items: readonly Item[], perform: (item: Item) => Promise<void>): Promise<Item[]> {
    const left: Item[] = [];
    const failures = new Map<string, number>();
    const hasFailed = (item: Item) => Number(this.#remembered.has(this.#nameOf(item).key));
    for (const item of items.toSorted((a, b) => hasFailed(a) - hasFailed(b))) {
      const { teamId, key } = this.#nameOf(item);
      const failed = failures.get(teamId) ?? 0;
      if (failed >= MAX_FAILURES) {
        left.push(item);
        continue;
      }
      this.#remembered.delete(key);
      try {
        await perform(item);
      } catch (error) {
        failures.set(teamId, failed + 1);
        this.#remember(key);
        left.push(item);
        this.#failed(error, item);
      }
    }
    return left;
  }

  #remember(key: string): void {
    this.#remembered.add(key);
    const [oldest] = this.#remembered;
    if (this.#remembered.size > MAX_REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
  }
}
