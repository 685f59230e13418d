/**
 * Does something with each of many items, of any number of teams. One that fails, because something has its rows locked,
 * stops none of the others: not now, and not the next time, when it comes last.
 */

/** After so many failures of one team the rest of it is left for the next time: what is locked may be the team. */
const MAX_FAILURES = 3;
/** Failures that are remembered. */
const MAX_REMEMBERED = 1_000;

export class EachAlone<Item> {
  readonly #nameOf: (item: Item) => { teamId: string; key: string };
  readonly #failed: (error: unknown, item: Item) => void;
  readonly #atOnce: number;
  readonly #remembered = new Set<string>();

  /**
   * @param input.failed told of each failure
   * @param input.atOnce with how many at the same time: one commit may then be that of several. One after the other
   *   unless told
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

  /** Never rejects. Answers those that failed or were left. */
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
