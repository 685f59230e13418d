/**
 * The values of expressions and what operators do with them: JSON values, timestamps (`Date`) and durations.
 *
 * All numbers are doubles, as in JSON. A number whose digits a double would lose (`JSON.rawJSON`) keeps its text, and
 * counts as the nearest double.
 */
import { EvaluationMistake } from './mistakes.ts';
import type { Steps } from './steps.ts';

/** The difference of two timestamps. */
export class Duration {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }

  /** As other implementations of the language write durations: `5400s`. */
  toJSON(): string {
    return `${this.ms / 1000}s`;
  }
}

/** The number, or undefined if the value is not one. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'object' && JSON.isRawJSON(value) ? Number(value.rawJSON) : undefined;
}

/** Whether the value is an object with named fields: no list, number, timestamp or duration. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Date) &&
    !(value instanceof Duration) &&
    !JSON.isRawJSON(value)
  );
}

/** The field of an object. Null if the value has no such field, or is not an object. */
export function fieldOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key) || !isObject(value))
    return null;
  return value[key] ?? null;
}

/** The item of a list or the field of an object. Null if it does not exist. */
export function itemOf(value: unknown, key: unknown): unknown {
  if (typeof key === 'string') return fieldOf(value, key);
  const index = numberOf(key);
  return Array.isArray(value) && index !== undefined ? (value[index] ?? null) : null;
}

/** Compares two values of any types. Values of different types are not equal. */
export function areEqual(one: unknown, other: unknown, steps: Steps): boolean {
  if (typeof one === 'string') {
    steps.read(one);
    return one === other;
  }
  if (one === other) return true;
  if (typeof one !== 'object' && typeof other !== 'object') return false;
  if (one === null || other === null) return false;
  const number = numberOf(one);
  if (number !== undefined) return number === numberOf(other);
  if (typeof one !== 'object' || typeof other !== 'object') return false;
  if (one instanceof Date) return other instanceof Date && one.getTime() === other.getTime();
  if (one instanceof Duration) return other instanceof Duration && one.ms === other.ms;
  if (Array.isArray(one)) {
    steps.take(one.length);
    if (!Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, at) => areEqual(item, other[at], steps));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const keys = Object.keys(one);
  steps.take(keys.length);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && areEqual(one[key], other[key], steps));
}

/**
 * Below zero if the first value is less, above zero if it is greater; NaN if one is null, so that every comparison is
 * false.
 *
 * @throws EvaluationMistake if the values have no common order
 */
export function orderOf(one: unknown, other: unknown, steps: Steps): number {
  if (one === null || other === null) return Number.NaN;
  if (typeof one === 'string' && typeof other === 'string') {
    steps.read(one);
    return one < other ? -1 : one > other ? 1 : 0;
  }
  const left = quantityOf(one);
  const right = quantityOf(other);
  if (left === undefined || right === undefined || left.kind !== right.kind) {
    throw new EvaluationMistake(`Cannot compare ${described(one)} with ${described(other)}`);
  }
  return left.amount - right.amount || (left.amount === right.amount ? 0 : Number.NaN);
}

function quantityOf(value: unknown): { kind: string; amount: number } | undefined {
  const number = numberOf(value);
  if (number !== undefined) return { kind: 'number', amount: number };
  if (value instanceof Date) return { kind: 'timestamp', amount: value.getTime() };
  if (value instanceof Duration) return { kind: 'duration', amount: value.ms };
  return undefined;
}

export type Arithmetic = '+' | '-' | '*' | '/' | '%';

/**
 * Calculates. The result is null if one of the values is null, and if the divisor is 0.
 *
 * @throws EvaluationMistake if the operator is not defined for these types
 */
export function calculated(one: unknown, operator: Arithmetic, other: unknown, steps: Steps): unknown {
  if (one === null || other === null) return null;
  const left = numberOf(one);
  const right = numberOf(other);
  if (left !== undefined && right !== undefined) return calculatedNumber(left, operator, right);
  if (operator === '+' || operator === '-') {
    const sum = operator === '+' ? added(one, other, steps) : subtracted(one, other);
    if (sum !== undefined) return sum;
  }
  throw new EvaluationMistake(`"${operator}" cannot be applied to ${described(one)} and ${described(other)}`);
}

function calculatedNumber(left: number, operator: Arithmetic, right: number): number | null {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return right === 0 ? null : left / right;
    case '%':
      return right === 0 ? null : left % right;
  }
}

function added(one: unknown, other: unknown, steps: Steps): unknown {
  if (typeof one === 'string' && typeof other === 'string') {
    steps.read(one);
    steps.read(other);
    return one + other;
  }
  if (Array.isArray(one) && Array.isArray(other)) {
    steps.take(one.length + other.length);
    return [...one, ...other];
  }
  if (one instanceof Date && other instanceof Duration) return timestampAt(one.getTime() + other.ms);
  if (one instanceof Duration && other instanceof Date) return timestampAt(one.ms + other.getTime());
  if (one instanceof Duration && other instanceof Duration) return new Duration(one.ms + other.ms);
  return undefined;
}

function subtracted(one: unknown, other: unknown): unknown {
  if (one instanceof Date && other instanceof Date) return new Duration(one.getTime() - other.getTime());
  if (one instanceof Date && other instanceof Duration) return timestampAt(one.getTime() - other.ms);
  if (one instanceof Duration && other instanceof Duration) return new Duration(one.ms - other.ms);
  return undefined;
}

/** @throws EvaluationMistake if the time is outside the years 1 to 9999 */
export function timestampAt(ms: number): Date {
  if (ms >= -62_135_596_800_000 && ms <= 253_402_300_799_999) return new Date(ms);
  throw new EvaluationMistake('A timestamp must be in the years 1 to 9999');
}

/** Text of a value inside a longer text: strings as they are, null as nothing, all others as JSON. @throws StepsMistake */
export function textOf(value: unknown, steps: Steps): string {
  countWriting(value, steps);
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  if (value instanceof Date) return value.toISOString();
  return value instanceof Duration ? value.toJSON() : JSON.stringify(value);
}

/**
 * Counts the steps of writing a value as JSON, before it is written: an expression can list a record a thousand times.
 *
 * @throws StepsMistake
 */
export function countWriting(value: unknown, steps: Steps): void {
  steps.read(JSON.isRawJSON(value) ? value.rawJSON : value);
  if (Array.isArray(value)) {
    for (const item of value) countWriting(item, steps);
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      steps.read(key);
      countWriting(value[key], steps);
    }
  }
}

/**
 * A value in an error: `a string ("abc")`, `a number (5)`, `a list`, `null`. A long string is not quoted, because an
 * erasure would not find a part of an address.
 */
export function described(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') {
    return value.length > MAX_QUOTED
      ? `a string of ${value.length} characters`
      : `a string (${JSON.stringify(value)})`;
  }
  if (typeof value === 'boolean') return `${value}`;
  const number = numberOf(value);
  if (number !== undefined) return `a number (${number})`;
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return `a timestamp (${value.toISOString()})`;
  return value instanceof Duration ? `a duration (${value.toJSON()})` : 'an object';
}

/** Maximum number of characters that an error quotes. */
const MAX_QUOTED = 60;

/** The first characters of a part of an expression. */
export function shortened(text: string): string {
  return text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED).toWellFormed()}…` : text;
}
