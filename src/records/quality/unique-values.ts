/** Recognizes values that occurred before, in memory that is bounded however many values a run has. */
import { textHash } from '../../std/text-hash.ts';

/**
 * Values that a run keeps, of all its fields together: 96 MB for one field (12 bytes in each of 8,388,608 places), at most
 * twice as much for several. Later values are still compared with these, but not with each other.
 */
export const MAX_KEPT = 5_000_000;
const FIRST_PLACES = 4_096;
/** Entries may fill this share of the places: beyond it, searches would take long. */
const MOST_FULL = 0.6;

/**
 * A hash table of values and their owners. It keeps 64 bits of a value and 32 of its owner: among 5 million values, two
 * different ones look alike with a probability below one in a million.
 */
export class UniqueValues {
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  readonly #most: number;
  readonly #hash = new Uint32Array(2);
  #size = 0;
  /** Three numbers for each place. The first is 0 in a free place. */
  #places = new Uint32Array(3 * FIRST_PLACES);

  /** @param most maximum number of values to keep */
  constructor(most = MAX_KEPT) {
    this.#most = most;
  }

  /** Whether values were left out, so that duplicates among later values are not found. */
  get isFull(): boolean {
    return this.#size >= this.#most;
  }

  get bytes(): number {
    return this.#places.byteLength;
  }

  /** Adds a value. @param owner see `ownerOf` @returns whether another owner had it before */
  add(value: string, owner: number): boolean {
    textHash(value, this.#seed, this.#hash);
    const a = (this.#hash[0] as number) || 1;
    const b = this.#hash[1] as number;
    const at = this.#find(a, b);
    if (this.#places[at] !== 0) return this.#places[at + 2] !== owner;
    if (this.isFull) return false;
    this.#places[at] = a;
    this.#places[at + 1] = b;
    this.#places[at + 2] = owner;
    this.#size += 1;
    if (this.#size > (this.#places.length / 3) * MOST_FULL) this.#grow();
    return false;
  }

  /** The index of the value, or of the free place for it. */
  #find(a: number, b: number): number {
    const places = this.#places;
    const mask = places.length / 3 - 1;
    for (let place = b & mask; ; place = (place + 1) & mask) {
      const at = 3 * place;
      if (places[at] === 0 || (places[at] === a && places[at + 1] === b)) return at;
    }
  }

  #grow(): void {
    const before = this.#places;
    this.#places = new Uint32Array(2 * before.length);
    for (let at = 0; at < before.length; at += 3) {
      if (before[at] === 0) continue;
      const to = this.#find(before[at] as number, before[at + 1] as number);
      this.#places[to] = before[at] as number;
      this.#places[to + 1] = before[at + 1] as number;
      this.#places[to + 2] = before[at + 2] as number;
    }
  }
}

const ofOwner = new Uint32Array(2);

/** The owner of values, from the id of a record: 32 bits. */
export function ownerOf(id: string): number {
  textHash(id, 0, ofOwner);
  return ofOwner[0] as number;
}
