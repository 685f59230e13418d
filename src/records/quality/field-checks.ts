/** Checks the fields of each record of a run against what the workflow expects, in the walk of `RunProfile`. */

import { patternOf } from '../../model/expressions/pattern.ts';
import {
  type Expect,
  type FieldExpect,
  type JobFinding,
  MAX_EXAMPLES,
  type ValueType,
} from '../../model/quality/expect.ts';
import type { ValueKind } from '../../model/quality/profile.ts';
import { compareDates, isOfType } from '../../model/quality/value-types.ts';
import type { Watch } from './run-profile.ts';
import { Searches } from './searches.ts';
import { MAX_KEPT, ownerOf, UniqueValues } from './unique-values.ts';

/** Why a record does not meet an expectation of a field. */
export type Broken = Pick<JobFinding, 'expectation' | 'found' | 'limit'> & { field: string };

/** Values in findings are shortened to this number of characters. */
const SHOWN = 100;
/** Maximum number of reasons per record. The findings of the run count all. */
const MAX_BROKEN = 10;

/** The checks of all fields, for one run. Memory does not grow with the number of records, except for `unique`. */
export class FieldChecks {
  /** By path of the field, for `RunProfile`. */
  readonly watches: ReadonlyMap<string, Watch>;
  readonly #fields: FieldCheck[];
  readonly #required: FieldCheck[];
  readonly #current: Current = { position: 0, owner: 0, at: -1, ids: [], broken: [] };
  readonly #hasUnique: boolean;
  readonly #searches = new Searches();

  /** @param kept number of values that the fields with `unique` keep together */
  constructor(fields: Expect['fields'], kept = MAX_KEPT) {
    const uniques = Object.values(fields).filter(({ unique }) => unique).length;
    const most = Math.floor(kept / Math.max(1, uniques));
    this.#fields = Object.entries(fields).map(
      ([name, expected]) => new FieldCheck(name, expected, this.#current, { most, searches: this.#searches }),
    );
    this.#required = this.#fields.filter(({ expected }) => expected.filled !== null);
    this.#hasUnique = this.#fields.some(({ unique }) => unique !== undefined);
    this.watches = new Map(this.#fields.map((field) => [field.name, field.watch]));
  }

  /** Starts the next record of the batch. Until `end`, the watches must be called with its filled values. */
  begin(id: string): void {
    this.#searches.beginRecord();
    const current = this.#current;
    current.position += 1;
    current.at += 1;
    current.ids.push(id);
    if (this.#hasUnique) current.owner = ownerOf(id);
  }

  end(): void {
    for (const field of this.#required) field.noteEmpty();
  }

  /**
   * Ends the batch.
   *
   * @returns what its records do not meet, of the expectations that a single record can meet, by place in the batch
   */
  endBatch(): (Broken[] | undefined)[] {
    for (const field of this.#fields) field.noteRepeated();
    const { broken } = this.#current;
    Object.assign(this.#current, { at: -1, ids: [], broken: [] });
    return broken;
  }

  /** Findings of the run so far, in the order of the definition. */
  findings(): JobFinding[] {
    return this.#fields.flatMap((field) => field.findings());
  }

  /** Fields with so many values that not all of them were compared for `unique`. */
  get notCompared(): string[] {
    return this.#fields.filter(({ unique }) => unique?.isFull).map(({ name }) => name);
  }
}

/** The record that is being checked, and its batch. */
interface Current {
  /** Counts the records of the run from 1. */
  position: number;
  /** See `ownerOf`. */
  owner: number;
  /** Place of the record in the batch, from 0. */
  at: number;
  /** The ids of the batch. */
  ids: string[];
  /** The reasons of the batch, by place of the record. Records without reasons have none. */
  broken: (Broken[] | undefined)[];
}

interface Check {
  expectation: string;
  limit: JobFinding['limit'];
  /** Whether this is `min` or `max`, which come after `type`. */
  isBound: boolean;
  fails(value: unknown, kind: ValueKind): boolean;
  count: number;
  found: JobFinding['found'];
  examples: string[];
}

class FieldCheck {
  readonly name: string;
  readonly expected: FieldExpect;
  readonly unique: UniqueValues | undefined;
  readonly #current: Current;
  readonly #checks: readonly Check[];
  readonly #isFine: Check['fails'] | undefined;
  readonly #repeated = newCheck('unique', true, () => true);
  /** The values of the batch that `unique` has, and the places of their records in the batch. */
  #values: unknown[] = [];
  #places: number[] = [];
  readonly #empty: string[] = [];
  #filled = 0;
  /** Position of the last record in which the field is filled. */
  #position = 0;

  /** @param of.most number of values that `unique` keeps */
  constructor(
    name: string,
    expected: FieldExpect,
    current: Current,
    of: { most: number; searches: Searches },
  ) {
    this.name = name;
    this.expected = expected;
    this.unique = expected.unique ? new UniqueValues(of.most) : undefined;
    this.#current = current;
    this.#checks = checksOf(expected, of.searches);
    this.#isFine = quickTest(expected);
  }

  readonly watch: Watch = (value, kind) => {
    const { position, at, owner } = this.#current;
    this.#filled += 1;
    this.#position = position;
    if (this.unique !== undefined) {
      this.unique.add(keyOf(value), owner);
      this.#values.push(value);
      this.#places.push(at);
    }
    if (this.#isFine?.(value, kind)) return;
    let isOfType = true;
    for (const check of this.#checks) {
      // The bounds of a type say nothing about a value of another type.
      if ((check.isBound && !isOfType) || !check.fails(value, kind)) continue;
      if (check.expectation === 'type') isOfType = false;
      this.#note(check, value, at);
    }
  };

  /** Notes the records of the batch whose value of a `unique` field another record has. */
  noteRepeated(): void {
    if (this.unique === undefined) return;
    for (const nth of this.unique.repeated()) {
      this.#note(this.#repeated, this.#values[nth], this.#places[nth] as number);
    }
    this.#values = [];
    this.#places = [];
  }

  #note(check: Check, value: unknown, at: number): void {
    const { expectation, limit, examples } = check;
    const { ids, broken } = this.#current;
    const found = shown(value);
    if (check.count === 0) check.found = found;
    check.count += 1;
    if (examples.length < MAX_EXAMPLES) examples.push(ids[at] as string);
    broken[at] ??= [];
    const reasons = broken[at];
    if (reasons.length < MAX_BROKEN) reasons.push({ field: this.name, expectation, found, limit });
  }

  noteEmpty(): void {
    const { position, at, ids } = this.#current;
    if (this.#position !== position && this.#empty.length < MAX_EXAMPLES) this.#empty.push(ids[at] as string);
  }

  findings(): JobFinding[] {
    const { name: field } = this;
    const { filled } = this.expected;
    const { position: records } = this.#current;
    const ofRecords = [...this.#checks, this.#repeated]
      .filter(({ count }) => count > 0)
      .map(({ expectation, limit, count, found, examples }) => {
        return { expectation, field, found, limit, count, examples: [...examples], drift: false };
      });
    if (filled === null || this.#filled * 100 >= filled * records) return ofRecords;
    const ofRun = {
      expectation: 'filled',
      field,
      found: Math.floor((this.#filled * 1_000) / records) / 10,
      limit: filled,
      count: records - this.#filled,
      examples: [...this.#empty],
      drift: false,
    };
    return [ofRun, ...ofRecords];
  }
}

function newCheck(expectation: string, limit: JobFinding['limit'], fails: Check['fails']): Check {
  const isBound = expectation === 'min' || expectation === 'max';
  return { expectation, limit, isBound, fails, count: 0, found: null, examples: [] };
}

function checksOf({ type, min, max, oneOf, matches }: FieldExpect, searches: Searches): Check[] {
  const checks: Check[] = [];
  const add = (...check: Parameters<typeof newCheck>) => checks.push(newCheck(...check));
  // The walk has already recognized the form of a text.
  if (type !== null) add('type', type, (value, kind) => kind !== type && !isOfType(value, type));
  const isBelow = (difference: number) => difference < 0;
  const isAbove = (difference: number) => difference > 0;
  if (min !== null) add('min', min, comparison(type, min, isBelow));
  if (max !== null) add('max', max, comparison(type, max, isAbove));
  if (oneOf !== null) {
    const values = new Set<unknown>(oneOf);
    add('oneOf', shown(oneOf), (value) => !values.has(value));
  }
  if (matches !== null) {
    const pattern = patternOf(matches);
    let hasMatch: boolean | undefined;
    add('matches', shown(matches), (value) => {
      hasMatch = typeof value === 'string' && searches.hasMatch(value, pattern);
      return hasMatch === false;
    });
    add('notSearched', shown(matches), () => hasMatch === undefined);
  }
  return checks;
}

/**
 * A test that most good values of a type pass. It takes a third of the time of the checks, which decide about the other
 * values.
 */
function quickTest({ type, min, max, oneOf, matches }: FieldExpect): Check['fails'] | undefined {
  if (oneOf !== null || matches !== null || type === 'datetime') return undefined;
  const isBounded = min !== null || max !== null;
  // Days have the order of their texts.
  const isDay = type === 'date';
  const low = min ?? (isDay ? '' : -Infinity);
  const high = max ?? (isDay ? '\uffff' : Infinity);
  const second = type === 'number' ? 'integer' : type;
  return (value, kind) => {
    if (type !== null && kind !== type && kind !== second) return false;
    if (!isBounded) return true;
    const size = typeof value === 'string' && !isDay ? value.length : value;
    return (
      typeof size === typeof low &&
      (size as number) >= (low as number) &&
      (size as number) <= (high as number)
    );
  };
}

/** Compares values of the type with a bound. */
function comparison(
  type: ValueType | null,
  bound: number | string,
  isWrong: (difference: number) => boolean,
): Check['fails'] {
  if (typeof bound === 'string') return (value) => isWrong(compareDates(value as string, bound));
  if (type === 'number' || type === 'integer') {
    return (value) =>
      isWrong((typeof value === 'number' ? value : Number((value as { rawJSON: string }).rawJSON)) - bound);
  }
  return (value) => isWrong((value as string | unknown[]).length - bound);
}

/** Values that are equal in JSON have the same key, and a text never has that of a number. */
function keyOf(value: unknown): string {
  return typeof value === 'string' ? value : `\u0000${JSON.stringify(value)}`;
}

/** A short value for people. */
function shown(value: unknown): NonNullable<JobFinding['found']> {
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN).toWellFormed()}…` : text;
}
