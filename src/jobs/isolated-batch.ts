/**
 * Performs an action for each of many items, which may belong to different teams, so that failures stay isolated: an item
 * that fails (for example, because its rows are locked) does not stop the others, and comes last in the next batch.
 */

/**
 * After this many failures of one team, its remaining items wait for the next batch, because the row of the team may be
 * locked.
 */
const MAX_FAILURES = 3;
/** How many failed items are remembered. */
const MAX_REMEMBERED = 1_000;

export class IsolatedBatch<Item> {
  readonly #nameOf: (item: Item) => { teamId: string; key: string };
  readonly #failed: (error: unknown, item: Item) => void;
  readonly #atOnce: number;
  /** The keys of the items whose last attempt failed. */
  readonly #remembered = new Set<string>();

  /**
   * @param input.failed called with each failure
   * @param input.atOnce maximum number of items in progress concurrently, so that one commit may serve several items
   *   (default: 1)
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

  /**
   * Performs the action for each item. Resolves with the items that failed, and the items that were skipped because
   * their team had too many failures. Never rejects.
   */
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
