/** The functions of expressions: one table from which they are checked, evaluated and documented. */

import { EvaluationMistake } from './mistakes.ts';
import { hasMatch, patternOf } from './pattern.ts';
import type { Steps } from './steps.ts';
import { dayOfYear, STEPS_OF_ZONE, toDuration, toTimestamp, wallClock } from './times.ts';
import { Duration, described, isObject, numberOf, textOf } from './values.ts';

export interface ExpressionFunction {
  /** How it is called: `text.contains(part)`. A method is called on its first argument. */
  form: string;
  /** What it returns, in one sentence. */
  what: string;
  /** Types for the check before anything is evaluated, in the syntax of the library; undefined if it knows them. */
  signatures?: readonly string[];
  /** Arguments without the receiver of a method, at least and at most. */
  takes: readonly [number, number];
  /** Never gets a null: a call with a null returns null, unless `ofNull` is given. */
  run(args: readonly unknown[], steps: Steps): unknown;
  /** Result of a call with a null. Default: null. */
  ofNull?: boolean;
  /** Checks arguments that are written as literals when the expression is saved; undefined for the others. */
  check?(literals: readonly unknown[]): void;
}

const TIMESTAMP = 'google.protobuf.Timestamp';

/** Functions, called as `name(…)`. */
export const FUNCTIONS: Readonly<Record<string, ExpressionFunction>> = {
  crosses: edge(
    'crosses',
    'a value passes a limit in either direction: `a < limit <= b` or `a >= limit > b`',
    (a, b, x) => (a < x ? x <= b : x > b),
  ),
  fallsBelow: edge(
    'fallsBelow',
    'a value falls below a limit: `a >= limit` and `b < limit`',
    (a, b, x) => a >= x && b < x,
  ),
  risesAbove: edge(
    'risesAbove',
    'a value rises above a limit: `a <= limit` and `b > limit`',
    (a, b, x) => a <= x && b > x,
  ),
  fallsBy: move(
    'fallsBy',
    'a value falls by at least an amount, such as `5`, or a part of `a`, such as `"5%"`',
    -1,
  ),
  risesBy: move(
    'risesBy',
    'a value rises by at least an amount, such as `5`, or a part of `a`, such as `"5%"`',
    1,
  ),
  has: {
    form: 'has(record.field)',
    what: 'true if the field exists, even if it is null',
    takes: [1, 1],
    run: () => null,
  },
  size: { form: 'size(value)', what: SIZE(), takes: [1, 1], run: ([value]) => sizeOf(value) },
  string: {
    form: 'string(value)',
    what: 'the value as text',
    signatures: ['list', 'map', 'null', TIMESTAMP, 'google.protobuf.Duration'].map(
      (type) => `string(${type}): string`,
    ),
    takes: [1, 1],
    run: ([value], steps) => textOf(value, steps),
  },
  double: {
    form: 'double(value)',
    what: 'a text as a number: `double("49.90")`',
    takes: [1, 1],
    run: toNumber,
  },
  int: {
    form: 'int(value)',
    what: 'a text or number as a whole number, rounded toward 0',
    takes: [1, 1],
    run: (args) => Math.trunc(toNumber(args)),
  },
  round: {
    form: 'round(value, digits)',
    what: 'the number, rounded to as many digits after the point (default: 0, at most 10)',
    signatures: ['round(dyn): double', 'round(dyn, int): double'],
    takes: [1, 2],
    run: (args) => rounded(numberAt(args, 0), args.length > 1 ? numberAt(args, 1) : 0),
    check: ([, digits]) => digits !== undefined && rounded(0, numberAt([digits], 0)),
  },
  bool: {
    form: 'bool(text)',
    what: '`"true"` and `"false"` as true and false',
    takes: [1, 1],
    run: toBoolean,
  },
  dyn: {
    form: 'dyn(value)',
    what: 'the value itself, whose type is not checked in advance',
    takes: [1, 1],
    run: ([value]) => value,
  },
  timestamp: {
    form: 'timestamp(text)',
    what: 'the time that a text in ISO 8601, or a number of seconds since 1970, means',
    signatures: [`timestamp(double): ${TIMESTAMP}`],
    takes: [1, 1],
    run: toTimestamp,
    check: ([text]) => text !== undefined && toTimestamp([text]),
  },
  duration: {
    form: 'duration(text)',
    what: 'a duration such as `"90s"`, `"36h"` or `"1h30m"`',
    takes: [1, 1],
    run: toDuration,
    check: ([text]) => text !== undefined && toDuration([text]),
  },
};

/** Functions that are called on a value, as `value.name(…)`. The first argument is the value. */
export const METHODS: Readonly<Record<string, ExpressionFunction>> = {
  contains: {
    form: 'text.contains(part)',
    what: 'true if the text contains the part',
    takes: [1, 1],
    run: (args, steps) => searched(args, steps).includes(textAt(args, 1)),
  },
  startsWith: {
    form: 'text.startsWith(part)',
    what: 'true if the text starts with the part',
    takes: [1, 1],
    run: (args) => textAt(args, 0).startsWith(textAt(args, 1)),
  },
  endsWith: {
    form: 'text.endsWith(part)',
    what: 'true if the text ends with the part',
    takes: [1, 1],
    run: (args) => textAt(args, 0).endsWith(textAt(args, 1)),
  },
  matches: {
    form: 'text.matches(pattern)',
    what: 'true if a part of the text matches the regular expression',
    takes: [1, 1],
    run: (args, steps) => hasMatch(textAt(args, 0), textAt(args, 1), steps),
    check: ([, pattern]) => pattern !== undefined && patternOf(textAt([pattern], 0)),
  },
  lowerAscii: {
    form: 'text.lowerAscii()',
    what: 'the text in lowercase',
    takes: [0, 0],
    run: (args) => textAt(args, 0).toLowerCase(),
  },
  upperAscii: {
    form: 'text.upperAscii()',
    what: 'the text in uppercase',
    takes: [0, 0],
    run: (args) => textAt(args, 0).toUpperCase(),
  },
  trim: {
    form: 'text.trim()',
    what: 'the text without spaces at both ends',
    takes: [0, 0],
    run: (args) => textAt(args, 0).trim(),
  },
  indexOf: {
    form: 'text.indexOf(part)',
    what: 'the position of the part, starting at 0; -1 if the text does not contain it',
    takes: [1, 2],
    run: (args, steps) =>
      searched(args, steps).indexOf(textAt(args, 1), args.length > 2 ? numberAt(args, 2) : 0),
  },
  lastIndexOf: {
    form: 'text.lastIndexOf(part)',
    what: 'the last position of the part; -1 if the text does not contain it',
    takes: [1, 1],
    run: (args, steps) => searched(args, steps).lastIndexOf(textAt(args, 1)),
  },
  substring: {
    form: 'text.substring(from, to)',
    what: 'the characters from a position up to another one, or up to the end',
    takes: [1, 2],
    run: (args) => textAt(args, 0).slice(...positions(args)),
  },
  split: {
    form: 'text.split(separator)',
    what: 'the list of the parts between separators',
    takes: [1, 1],
    run: (args, steps) => {
      const parts = searched(args, steps).split(textAt(args, 1));
      steps.take(parts.length);
      return parts;
    },
  },
  join: {
    form: 'list.join(separator)',
    what: 'the items of a list as one text',
    takes: [0, 1],
    run: joined,
  },
  size: { form: 'value.size()', what: SIZE(), takes: [0, 0], run: ([value]) => sizeOf(value) },
  getFullYear: clock('getFullYear', 'the year', (time) => time.getUTCFullYear()),
  getMonth: clock('getMonth', 'the month, from 0 (January) to 11', (time) => time.getUTCMonth()),
  getDate: clock('getDate', 'the day of the month, from 1', (time) => time.getUTCDate()),
  getDayOfMonth: clock('getDayOfMonth', 'the day of the month, from 0', (time) => time.getUTCDate() - 1),
  getDayOfWeek: clock('getDayOfWeek', 'the day of the week, from 0 (Sunday) to 6', (time) =>
    time.getUTCDay(),
  ),
  getDayOfYear: clock('getDayOfYear', 'the day of the year, from 0', dayOfYear),
  getHours: clock(
    'getHours',
    'the hour of a time, or the hours of a duration',
    (time) => time.getUTCHours(),
    3_600_000,
  ),
  getMinutes: clock(
    'getMinutes',
    'the minute of a time, or the minutes of a duration',
    (time) => time.getUTCMinutes(),
    60_000,
  ),
  getSeconds: clock(
    'getSeconds',
    'the second of a time, or the seconds of a duration',
    (time) => time.getUTCSeconds(),
    1_000,
  ),
};

/** Methods whose first argument is a name for each item and whose last is an expression about this item. */
export const MACROS: Readonly<Record<string, Pick<ExpressionFunction, 'form' | 'what' | 'takes'>>> = {
  exists: {
    form: 'list.exists(x, condition)',
    what: 'true if the condition is true of an item',
    takes: [2, 2],
  },
  all: { form: 'list.all(x, condition)', what: 'true if the condition is true of every item', takes: [2, 2] },
  exists_one: {
    form: 'list.exists_one(x, condition)',
    what: 'true if the condition is true of exactly one item',
    takes: [2, 2],
  },
  filter: {
    form: 'list.filter(x, condition)',
    what: 'the items that fulfill the condition',
    takes: [2, 2],
  },
  map: {
    form: 'list.map(x, value)',
    what: 'the value for each item; `list.map(x, condition, value)` leaves out items',
    takes: [2, 3],
  },
};

function SIZE(): string {
  return 'the number of characters of a text, items of a list, or fields of an object';
}

/** A comparison of a number before and after with a limit. */
function edge(
  name: string,
  what: string,
  isCrossed: (a: number, b: number, limit: number) => boolean,
): ExpressionFunction {
  return {
    form: `${name}(a, b, limit)`,
    what: `true if ${what}`,
    takes: [3, 3],
    ofNull: false,
    run: (args) => isCrossed(numberAt(args, 0), numberAt(args, 1), numberAt(args, 2)),
    check: ([, , limit]) => limit !== undefined && numberAt([limit], 0),
  };
}

/**
 * Doubles are not exact: 0.3 - 0.1 is less than 0.2. A change counts if it is smaller than the amount by at most this
 * part of the greater value.
 */
const ROUNDING = 1e-9;

function move(name: string, what: string, sign: 1 | -1): ExpressionFunction {
  return {
    form: `${name}(a, b, amount)`,
    what: `true if ${what}`,
    takes: [3, 3],
    ofNull: false,
    run: (args) => {
      const a = numberAt(args, 0);
      const b = numberAt(args, 1);
      const amount = amountOf(args[2], a);
      if (amount === 0) return false;
      return sign * (b - a) >= amount - ROUNDING * Math.max(Math.abs(a), Math.abs(b));
    },
    check: ([, , amount]) => amount !== undefined && amountOf(amount, 1),
  };
}

/** An amount such as `5` or `"5%"` of a value. 0 if it is a part of 0. */
function amountOf(amount: unknown, of: number): number {
  const percent = typeof amount === 'string' ? /^(\d{1,9}(?:\.\d{1,9})?) ?%$/.exec(amount)?.[1] : undefined;
  const number = percent === undefined ? numberOf(amount) : Number(percent);
  if (number === undefined || !(number > 0)) {
    throw new EvaluationMistake(
      `An amount is a number greater than 0 or a text such as "5%", not ${described(amount)}`,
    );
  }
  return percent === undefined ? number : (Math.abs(of) * number) / 100;
}

function clock(
  name: string,
  what: string,
  read: (time: Date) => number,
  unitMs?: number,
): ExpressionFunction {
  return {
    form: `time.${name}(zone)`,
    what,
    takes: [0, 1],
    run: ([value, zone], steps) => {
      if (value instanceof Duration && unitMs !== undefined) return Math.trunc(value.ms / unitMs);
      if (!(value instanceof Date))
        throw new EvaluationMistake(`Expects a timestamp, not ${described(value)}`);
      if (zone === undefined) return read(value);
      steps.take(STEPS_OF_ZONE);
      return read(wallClock(value, textAt([zone], 0)));
    },
    check: ([, zone]) => zone !== undefined && wallClock(new Date(0), textAt([zone], 0)),
  };
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (Array.isArray(value)) return value.length;
  if (isObject(value)) return Object.keys(value).length;
  throw new EvaluationMistake(`Expects a text, a list or an object, not ${described(value)}`);
}

function toNumber([value]: readonly unknown[]): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : numberOf(value);
  if (number !== undefined && Number.isFinite(number)) return number;
  throw new EvaluationMistake(`Cannot convert ${described(value)} to a number`);
}

function rounded(value: number, digits: number): number {
  if (Number.isInteger(digits) && digits >= 0 && digits <= 10) return Number(value.toFixed(digits));
  throw new EvaluationMistake(`A number is rounded to 0 to 10 digits, not ${digits}`);
}

function toBoolean([value]: readonly unknown[]): boolean {
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw new EvaluationMistake(`Cannot convert ${described(value)} to true or false`);
}

function positions(args: readonly unknown[]): [number, number?] {
  const size = textAt(args, 0).length;
  const from = Math.min(Math.max(numberAt(args, 1), 0), size);
  return args.length > 2 ? [from, Math.min(Math.max(numberAt(args, 2), from), size)] : [from];
}

function joined(args: readonly unknown[], steps: Steps): string {
  const [list] = args;
  if (!Array.isArray(list)) throw new EvaluationMistake(`Expects a list, not ${described(list)}`);
  const separator = args.length > 1 ? textAt(args, 1) : '';
  steps.take((list.length * separator.length) / 16);
  return list.map((item) => textOf(item, steps)).join(separator);
}

/** The text in which a part is searched. */
function searched(args: readonly unknown[], steps: Steps): string {
  const text = textAt(args, 0);
  steps.search(text, textAt(args, 1));
  return text;
}

function textAt(args: readonly unknown[], at: number): string {
  const value = args[at];
  if (typeof value === 'string') return value;
  throw new EvaluationMistake(`Expects a text, not ${described(value)}`);
}

function numberAt(args: readonly unknown[], at: number): number {
  const number = numberOf(args[at]);
  if (number !== undefined) return number;
  throw new EvaluationMistake(`Expects a number, not ${described(args[at])}`);
}
