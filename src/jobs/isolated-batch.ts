/**
 * Performs an action for each of many items of any number of teams, so that failures stay isolated: an item that fails,
 * for instance because its rows are locked, neither stops the others nor holds them up the next time, when it comes last.
 */

/** After this many failures of a team, its other items are left for the next time: the team's own row may be locked. */
const MAX_FAILURES = 3;
/** Failed items that are remembered. */
const MAX_REMEMBERED = 1_000;

export class IsolatedBatch<Item> {
  readonly #nameOf: (item: Item) => { teamId: string; key: string };
  readonly #failed: (error: unknown, item: Item) => void;
  readonly #atOnce: number;
  /** Keys of the items that failed last time. */
  readonly #remembered = new Set<string>();

  /**
   * @param input.failed called for each failure
   * @param input.atOnce how many items are in progress at once, so that one commit may serve several; 1 by default
   */
  constructor(input: {
    nameOf: (item: Item) => { teamId: string; key: string };
    failed: (error: unknown, item: Item) => void;
    atOnce?: number;
  }) {
    this.#nameOf = input.nameOf;
    this.#failed = input.failed;
    this.#atOnce = input.atOnce ?? 1;
  }

  /** Resolves with the items that failed or were left for the next time. Never rejects. */
  async each(items: readonly Item[], perform: (item: Item) => Promise<void>): Promise<Item[]> {
    const left: Item[] = [];
    const failures = new Map<string, number>();
    const hasFailed = (item: Item) => Number(this.#remembered.has(this.#nameOf(item).key));
    const waiting = items.toSorted((a, b) => hasFailed(a) - hasFailed(b)).values();
    const inTurn = async () => {
      for (const item of waiting) {
        const { teamId, key } = this.#nameOf(item);
        const failed = () => failures.get(teamId) ?? 0;
        if (failed() >= MAX_FAILURES) {
          left.push(item);
          continue;
        }
        this.#remembered.delete(key);
        try {
          await perform(item);
        } catch (error) {
          failures.set(teamId, failed() + 1);
          this.#remember(key);
          left.push(item);
          this.#failed(error, item);
        }
      }
    };
    await Promise.all(Array.from({ length: this.#atOnce }, inTurn));
    return left;
  }

  #remember(key: string): void {
    this.#remembered.add(key);
    const [oldest] = this.#remembered;
    if (this.#remembered.size > MAX_REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
  }
}
