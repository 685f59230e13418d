/**
 * Compares JSON texts by value. This is the only place that decides whether a record or one of its fields has
 * changed, and whether a request repeats an earlier one.
 *
 *     equal                                     different
 *     {"a":1,"b":2}   {"b":2,"a":1}             [1,2]               [2,1]
 *     1   1.0   10e-1                           9007199254740993    9007199254740992
 *     0   -0                                    1                   1.0000000000000001
 *     "A"   "\u0041"                            "é" (one character) "é" (e and an accent)
 *
 * Numbers are compared by their exact decimal value, not as doubles. If an object repeats a key, the last value
 * counts, as for every reader.
 */
import { LOSES_DIGITS, parseAsWritten, parseExactly } from '../std/exact-json.ts';
import type { Compare } from './workflow.ts';

/** Both texts must be valid JSON without spaces, as `JSON.stringify` writes records. */
export function sameJson(one: string, other: string): boolean {
  if (one === other) return true;
  // Equal values that are written in a different order consist of the same characters, unless they contain numbers
  // whose text was preserved. This check avoids parsing texts with different characters (5 µs per record).
  const mayBe = one.length === other.length && sumOf(one) === sumOf(other);
  if (!mayBe && !LOSES_DIGITS.test(one) && !LOSES_DIGITS.test(other)) return false;
  return sameValue(parseExactly(one), parseExactly(other));
}

function sumOf(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at += 1) sum += text.charCodeAt(at);
  return sum;
}

/** Whether two values that `parseAsWritten` returned are written in the same way. */
function sameText(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Like `sameJson`, for values that `parseExactly` returned. */
function sameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (isNumber(one) || isNumber(other)) {
    return isNumber(one) && isNumber(other) && decimalOf(one) === decimalOf(other);
  }
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    return (
      Array.isArray(one) &&
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((item, at) => sameValue(item, other[at]))
    );
  }
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && sameValue(memberOf(one, key), memberOf(other, key)))
  );
}

/**
 * Returns the same text for all values that `sameValue` considers equal. The text is meant for hashing, and is not
 * always valid JSON.
 */
export function canonicalJson(value: unknown): string {
  if (isNumber(value)) return decimalOf(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(memberOf(value, key))}`);
  return `{${members.join(',')}}`;
}

type ExactNumber = number | { rawJSON: string };

function isNumber(value: unknown): value is ExactNumber {
  return typeof value === 'number' || JSON.isRawJSON(value);
}

function memberOf(object: object, key: string): unknown {
  return (object as Record<string, unknown>)[key];
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,15}))?$/;

/** Returns the same text for all notations of a number: sign, digits without zeros at both ends, power of 10. */
function decimalOf(number: ExactNumber): string {
  const text = typeof number === 'number' ? String(number) : number.rawJSON;
  const [, sign, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? [];
  // Numbers with a longer exponent are useless for arithmetic. Two such numbers are equal only if their texts are
  // equal.
  if (sign === undefined) return text;
  const digits = withoutLeadingZeros(whole + fraction);
  let last = digits.length;
  while (last > 0 && digits[last - 1] === '0') last -= 1;
  if (last === 0) return '0';
  return `${sign}${digits.slice(0, last)}e${Number(exponent) - fraction.length + digits.length - last}`;
}

function withoutLeadingZeros(digits: string): string {
  let first = 0;
  while (digits[first] === '0') first += 1;
  return digits.slice(first);
}

export const CHANGE_TYPES = ['added', 'changed', 'removed'] as const;

/** One record's difference between two versions. */
export interface Difference {
  type: (typeof CHANGE_TYPES)[number];
  id: string;
  fields: { key: string; value?: unknown; previousValue?: unknown }[];
}

/**
 * Maximum size of the differences in the body of an event. The whole body should stay below 20 kB (Standard Webhooks
 * 1.0).
 */
export const MAX_DIFFERENCES_BYTES = 16_000;

/** A record that was added, removed or changed: its JSON text before and after, undefined if it did not exist. */
export interface ChangedRecord {
  id: string;
  before: string | undefined;
  after: string | undefined;
}

/** Lists the differences field by field, as far as they fit into the body of an event. */
export function differences(records: Iterable<ChangedRecord>): {
  differences: Difference[];
  truncated: boolean;
} {
  const list: Difference[] = [];
  let bytes = 0;
  for (const record of records) {
    const difference = differenceOf(record);
    bytes += Buffer.byteLength(JSON.stringify(difference)) + 1;
    if (bytes > MAX_DIFFERENCES_BYTES) return { differences: list, truncated: true };
    list.push(difference);
  }
  return { differences: list, truncated: false };
}

/** Compares two texts of a record field by field. By text, no field differs if only their order does. */
export function differenceOf({ id, before, after }: ChangedRecord, compare: Compare = 'value'): Difference {
  const [was, is] = [exactRecord(before, compare), exactRecord(after, compare)];
  return differenceOfValues({ id, before: was, after: is }, compare);
}

/** A record that `exactRecord` returned. */
export type ExactRecord = Record<string, unknown>;

export function exactRecord(text: string | undefined, compare: Compare): ExactRecord | undefined {
  if (text === undefined) return undefined;
  return (compare === 'text' ? parseAsWritten(text) : parseExactly(text)) as ExactRecord;
}

/** Like `differenceOf`, for a record that was parsed already. */
export function differenceOfValues(
  record: { id: string; before: ExactRecord | undefined; after: ExactRecord | undefined },
  compare: Compare = 'value',
): Difference {
  const { id, before = {}, after = {} } = record;
  const isSame = compare === 'text' ? sameText : sameValue;
  const fields: Difference['fields'] = [];
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const had = Object.hasOwn(before, key);
    const has = Object.hasOwn(after, key);
    if (had && has && isSame(before[key], after[key])) continue;
    fields.push({
      key,
      ...(has ? { value: after[key] } : {}),
      ...(had ? { previousValue: before[key] } : {}),
    });
  }
  const type = record.before === undefined ? 'added' : record.after === undefined ? 'removed' : 'changed';
  return { type, id, fields };
}
