/** Which numbers have been seen: a bitmap that grows, one bit for each. */

/** A set of non-negative integers that costs one bit for each number up to the largest: 5 million take 625 kB. */
export class SeenSet {
  #bits = new Uint8Array(1_024);

  add(number: number): void {
    const byte = Math.floor(number / 8);
    if (byte >= this.#bits.length) {
      const grown = new Uint8Array(Math.max(byte + 1, this.#bits.length * 2));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    this.#bits[byte] = (this.#bits[byte] ?? 0) | (1 << (number % 8));
  }

  has(number: number): boolean {
    return ((this.#bits[Math.floor(number / 8)] ?? 0) & (1 << (number % 8))) !== 0;
  }
}
