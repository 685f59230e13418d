/** Recognizes values that occurred before, in memory that is bounded however many values a run has. */
import { textHash } from '../../std/text-hash.ts';

/**
 * Values that a run keeps, of all its fields together: 96 MB for one field (12 bytes in each of 8,388,608 places), at most
 * twice as much for several. Later values are still compared with these, but not with each other.
 */
export const MAX_KEPT = 5_000_000;
const FIRST_PLACES = 4_096;
/** With fewer places, the table grows to four times its size instead of twice, which moves its entries less often. */
const MANY_PLACES = 1_000_000;
/** Entries may fill this share of the places: beyond it, searches would take long. */
const MOST_FULL = 0.6;

/** Numbers per value that waits: the two of its hash, and its owner. */
const WAITING = 3;

/**
 * A hash table of values and their owners. It keeps 64 bits of a value and 32 of its owner: among 5 million values, two
 * different ones look alike with a probability below one in a million.
 */
export class UniqueValues {
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  readonly #most: number;
  readonly #hash = new Int32Array(2);
  #size = 0;
  #mask = FIRST_PLACES - 1;
  /** Two numbers for each place, so that a search rarely reads more than one line of memory. 0 is a free place. */
  #values = new Int32Array(2 * FIRST_PLACES);
  #owners = new Int32Array(FIRST_PLACES);
  /** The values that were added since the last `repeated`. */
  #waiting: Int32Array = new Int32Array(WAITING * FIRST_PLACES);
  #waits = 0;

  /** @param most maximum number of values to keep */
  constructor(most = MAX_KEPT) {
    this.#most = most;
  }

  /** Whether values were left out, so that duplicates among later values are not found. */
  get isFull(): boolean {
    return this.#size >= this.#most;
  }

  get bytes(): number {
    return this.#values.byteLength + this.#owners.byteLength + this.#waiting.byteLength;
  }

  /** Adds a value. @param owner see `ownerOf` */
  add(value: string, owner: number): void {
    const at = WAITING * this.#waits;
    if (at === this.#waiting.length) this.#waiting = grown(this.#waiting);
    textHash(value, this.#seed, this.#hash);
    const waiting = this.#waiting;
    waiting[at] = (this.#hash[0] as number) || 1;
    waiting[at + 1] = this.#hash[1] as number;
    waiting[at + 2] = owner;
    this.#waits += 1;
  }

  /**
   * Searches the values that were added since the last call. Most searches wait for memory. Made one right after the
   * other, they wait together, which takes half as long.
   *
   * @returns which of them another owner had before, counted from 0
   */
  repeated(): number[] {
    const found: number[] = [];
    const waiting = this.#waiting;
    const end = WAITING * this.#waits;
    this.#waits = 0;
    load(this.#values, this.#mask, waiting, end);
    for (let at = 0; at < end; at += WAITING) {
      const a = waiting[at] as number;
      const b = waiting[at + 1] as number;
      const owner = waiting[at + 2] as number;
      const place = find(this.#values, this.#mask, a, b);
      if (this.#values[2 * place] === 0) this.#keep(place, a, b, owner);
      else if (this.#owners[place] !== owner) found.push(at / WAITING);
    }
    return found;
  }

  #keep(place: number, a: number, b: number, owner: number): void {
    if (this.isFull) return;
    this.#values[2 * place] = a;
    this.#values[2 * place + 1] = b;
    this.#owners[place] = owner;
    this.#size += 1;
    if (this.#size > this.#mask * MOST_FULL) this.#grow();
  }

  #grow(): void {
    const [values, owners] = [this.#values, this.#owners];
    const places = owners.length * (owners.length < MANY_PLACES ? 4 : 2);
    this.#values = new Int32Array(2 * places);
    this.#owners = new Int32Array(places);
    this.#mask = places - 1;
    for (let from = 0; from < owners.length; from += 1) {
      const a = values[2 * from] as number;
      if (a === 0) continue;
      const b = values[2 * from + 1] as number;
      const to = find(this.#values, this.#mask, a, b);
      this.#values[2 * to] = a;
      this.#values[2 * to + 1] = b;
      this.#owners[to] = owners[from] as number;
    }
  }
}

/** The place of the value, or the free place for it. */
function find(values: Int32Array, mask: number, a: number, b: number): number {
  for (let place = b & mask; ; place = (place + 1) & mask) {
    const found = values[2 * place];
    if (found === 0 || (found === a && values[2 * place + 1] === b)) return place;
  }
}

/** Keeps the compiler from leaving out reads whose results nobody needs. */
const unused = new Int32Array(1);

/**
 * Reads the places where the searches for the waiting values start. No read depends on another, so the processor makes
 * many at a time, and the searches find the places in its cache.
 */
function load(values: Int32Array, mask: number, waiting: Int32Array, end: number): void {
  let all = 0;
  for (let at = 1; at < end; at += WAITING) all ^= values[2 * ((waiting[at] as number) & mask)] as number;
  unused[0] = all;
}

function grown(array: Int32Array): Int32Array {
  const larger = new Int32Array(2 * array.length);
  larger.set(array);
  return larger;
}
const ofOwner = new Int32Array(2);

/** The owner of values, from the id of a record: 32 bits. */
export function ownerOf(id: string): number {
  textHash(id, 0, ofOwner);
  return ofOwner[0] as number;
}
