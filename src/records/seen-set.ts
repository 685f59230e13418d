/** Which numbers have been seen: a bitmap in pages, of which only those are there that hold something. */

/** Numbers that one page stands for: 1 KiB. */
const PAGE = 8_192;

/**
 * A set of non-negative integers that costs one bit for each number where they lie close together, and at most a
 * page for each number where they do not: 5 million in a row take 625 kB, wherever the row begins.
 */
export class SeenSet {
  readonly #pages = new Map<number, Uint8Array>();

  add(number: number): void {
    const at = Math.floor(number / PAGE);
    let page = this.#pages.get(at);
    if (page === undefined) {
      page = new Uint8Array(PAGE / 8);
      this.#pages.set(at, page);
    }
    const bit = number % PAGE;
    page[bit >> 3] = (page[bit >> 3] ?? 0) | (1 << (bit & 7));
  }

  has(number: number): boolean {
    const bit = number % PAGE;
    return ((this.#pages.get(Math.floor(number / PAGE))?.[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0;
  }
}
