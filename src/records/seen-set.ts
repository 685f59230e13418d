/** A set of integers as a sparse bitmap. */

/** Numbers per page of the bitmap; a page takes 1 KiB. */
const PAGE = 8_192;

/**
 * A set of non-negative integers that takes one bit for each number where they are dense, and at most a page for each
 * where they are sparse: 5 million consecutive numbers take 625 kB, wherever they start.
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
