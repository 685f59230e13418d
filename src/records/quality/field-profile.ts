/**
 * Counts what the values of one field look like: how many are filled, their kinds, ranges, and about how many differ.
 * Takes a few nanoseconds per value, because every value of every run passes through it.
 */

import { type ProfileField, VALUE_KINDS, type ValueKind } from '../../model/quality/profile.ts';
import { textTypeOf } from '../../model/quality/value-types.ts';

/** Number of registers of the estimate (HyperLogLog; Flajolet et al., 2007). Its standard error is 1.04 / √256. */
const REGISTERS = 256;
const ALPHA = 0.7213 / (1 + 1.079 / REGISTERS);
/** Of a longer text, only the first and the last characters and the length are hashed. */
const HASHED_CHARACTERS = 64;
/** Longer texts are neither URLs nor numbers. */
const MAX_FORM = 2_048;

const NUMERIC = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

/** The place of each kind in the counts. */
const PLACE = Object.fromEntries(VALUE_KINDS.map((kind, at) => [kind, at])) as Record<ValueKind, number>;

const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

export class FieldProfile {
  present = 0;
  filled = 0;
  readonly #counts = new Uint32Array(VALUE_KINDS.length);
  readonly #registers = new Uint8Array(REGISTERS);
  /** The kind of the last filled value, and its place. */
  #kind: ValueKind = 'text';
  #place = PLACE.text;
  #min = Infinity;
  #max = -Infinity;
  #shortest = Infinity;
  #longest = -1;
  #earliest = '';
  #latest = '';
  /** The hashed value before this one. Many fields repeat a value. */
  #last: unknown;

  /**
   * Counts one value as `JSON.parse` returns it, or with numbers that `JSON.rawJSON` keeps.
   *
   * @returns the kind of the value; undefined if the value is not filled: null or `""`
   */
  add(value: unknown): ValueKind | undefined {
    this.present += 1;
    if (value === null || value === '') return undefined;
    this.filled += 1;
    const kind = this.#note(value);
    // Looking up the place of a kind takes longer than all of this.
    if (kind !== this.#kind) {
      this.#kind = kind;
      this.#place = PLACE[kind];
    }
    this.#counts[this.#place] = (this.#counts[this.#place] as number) + 1;
    return kind;
  }

  /** @param name the name under which the field is listed */
  result(name: string): ProfileField {
    const kinds: ProfileField['kinds'] = {};
    let scalars = 0;
    VALUE_KINDS.forEach((kind, at) => {
      const count = this.#counts[at] as number;
      if (count > 0) kinds[kind] = count;
      if (kind !== 'list' && kind !== 'object') scalars += count;
    });
    return {
      name,
      present: this.present,
      filled: this.filled,
      kinds,
      ...(scalars === 0 ? {} : { distinct: Math.min(scalars, Math.max(1, estimate(this.#registers))) }),
      ...(this.#min > this.#max ? {} : { min: this.#min, max: this.#max }),
      ...(this.#longest < 0 ? {} : { shortest: this.#shortest, longest: this.#longest }),
      ...(this.#latest === ''
        ? {}
        : { earliest: this.#earliest.slice(0, DAY), latest: this.#latest.slice(0, DAY) }),
    };
  }

  #note(value: unknown): ValueKind {
    switch (typeof value) {
      case 'string':
        return this.#noteText(value);
      case 'number':
        return this.#noteNumber(value);
      case 'boolean':
        this.#differ(value ? 0x51_7c_c1_b7 : 0x27_22_0a_95);
        return 'boolean';
      default:
        if (Array.isArray(value)) return 'list';
        return JSON.isRawJSON(value) ? this.#noteNumber(Number(value.rawJSON)) : 'object';
    }
  }

  #noteNumber(value: number): ValueKind {
    // A number that JSON can write and a double cannot, like 1e999, has no place in a range.
    if (Number.isFinite(value)) {
      if (value < this.#min) this.#min = value;
      if (value > this.#max) this.#max = value;
    }
    if (value !== this.#last) {
      this.#last = value;
      double[0] = value;
      this.#differ(mixed((halves[0] as number) ^ Math.imul(halves[1] as number, 0x85_eb_ca_6b)));
    }
    return Number.isInteger(value) ? 'integer' : 'number';
  }

  #noteText(text: string): ValueKind {
    const { length } = text;
    if (length < this.#shortest) this.#shortest = length;
    if (length > this.#longest) this.#longest = length;
    if (text !== this.#last) {
      this.#last = text;
      this.#differ(hashOf(text));
    }
    const kind = formOf(text);
    if (kind === 'date' || kind === 'datetime') {
      if (this.#earliest === '' || text < this.#earliest) this.#earliest = text;
      if (text > this.#latest) this.#latest = text;
    }
    return kind;
  }

  #differ(hash: number): void {
    const at = hash >>> 24;
    const rank = Math.clz32((hash << 8) | 0x80) + 1;
    if (rank > (this.#registers[at] as number)) this.#registers[at] = rank;
  }
}

/** Length of a day: `2026-11-24`. */
const DAY = 10;

/** The kind of a filled text. */
function formOf(text: string): ValueKind {
  if (text.length > MAX_FORM) return 'text';
  const type = textTypeOf(text);
  if (type !== 'text') return type;
  const first = text.charCodeAt(0);
  // Digits, and the characters that a number may start with: + - .
  const mayBeNumber = (first >= 0x30 && first <= 0x39) || first === 0x2d || first === 0x2b || first === 0x2e;
  return mayBeNumber && NUMERIC.test(text) ? 'numeric' : 'text';
}

/** A hash of a text: FNV-1a over pairs of characters, then mixed. */
function hashOf(text: string): number {
  const { length } = text;
  let hash = 0x81_1c_9d_c5 ^ length;
  const head = length > HASHED_CHARACTERS ? HASHED_CHARACTERS / 2 : length;
  hash = hashed(text, 0, head, hash);
  if (head < length) hash = hashed(text, length - HASHED_CHARACTERS / 2, length, hash);
  return mixed(hash);
}

function hashed(text: string, from: number, to: number, start: number): number {
  let hash = start;
  let at = from;
  for (; at + 1 < to; at += 2) {
    hash = Math.imul(hash ^ text.charCodeAt(at) ^ (text.charCodeAt(at + 1) << 16), 0x01_00_01_93);
    hash ^= hash >>> 15;
  }
  return at < to ? Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93) : hash;
}

/** Spreads the bits of a hash (the end of MurmurHash3). */
function mixed(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35);
  return hash ^ (hash >>> 16);
}

function estimate(registers: Uint8Array): number {
  let sum = 0;
  let zeros = 0;
  for (const rank of registers) {
    sum += 2 ** -rank;
    if (rank === 0) zeros += 1;
  }
  const raw = (ALPHA * REGISTERS * REGISTERS) / sum;
  // Few values are counted by the registers that none of them has reached.
  const isSmall = raw <= 2.5 * REGISTERS && zeros > 0;
  return Math.round(isSmall ? REGISTERS * Math.log(REGISTERS / zeros) : raw);
}
