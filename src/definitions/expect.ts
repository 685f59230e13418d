/** Checks `expect`, and reads the `guards` of earlier versions as `expect`. */

import { EvaluationMistake } from '../model/expressions/mistakes.ts';
import { patternOf } from '../model/expressions/pattern.ts';
import {
  EXPECT_NOTHING,
  type Expect,
  type FieldExpect,
  OTHERWISES,
  type RecordsExpect,
  VALUE_TYPES,
  type ValueType,
} from '../model/quality/expect.ts';
import { expectOfGuards } from '../model/quality/guards.ts';
import { compareDates, isOfType } from '../model/quality/value-types.ts';
import { nearest } from '../std/nearest.ts';
import { addUnit, asMap, asNumber, describe, durationWithin, type Path, type Section } from './section.ts';

const COUNT = { min: 0, max: 1_000_000_000 };
const OF_EXPECT = ['records', 'fields', 'fresh', 'otherwise'];
const OF_RECORDS = ['min', 'max', 'drop', 'rise', 'duplicates'];
const OF_FIELD = ['type', 'min', 'max', 'filled', 'unique', 'oneOf', 'matches'];
/** Maximum number of fields with expectations, and of values in `oneOf`: each costs time per record. */
const MAX_FIELDS = 200;
const MAX_VALUES = 1_000;
/** Maximum number of instructions of a compiled pattern: each takes time for every character of a run. */
const MAX_INSTRUCTIONS = 200;
/** Types with an order or a length, which `min` and `max` bound. */
const COUNTED: readonly ValueType[] = ['number', 'integer', 'text', 'url', 'email', 'list'];
const DATED: readonly ValueType[] = ['date', 'datetime'];
/** Types whose values are texts, which `matches` looks at. */
const TEXTUAL: readonly ValueType[] = ['text', 'url', 'email', 'date', 'datetime'];
/** Names that other languages have for the types. */
const SYNONYMS: ReadonlyMap<string, ValueType> = new Map<string, ValueType>([
  ['string', 'text'],
  ['str', 'text'],
  ['float', 'number'],
  ['double', 'number'],
  ['decimal', 'number'],
  ['int', 'integer'],
  ['bool', 'boolean'],
  ['array', 'list'],
  ['map', 'object'],
  ['uri', 'url'],
  ['mail', 'email'],
  ['day', 'date'],
  ['time', 'datetime'],
  ['timestamp', 'datetime'],
]);
/** A message lists at most this many names. */
const MAX_SHOWN = 40;

/**
 * @param root the whole definition
 * @param fields the fields that an HTTP source reads; undefined if they are not known
 */
export function checkExpect(root: Section, fields: readonly string[] | undefined): Expect {
  if (!root.has('expect')) return checkGuards(root, fields);
  if (root.has('guards')) {
    root.wrong('guards', 'is the earlier form of `expect`. Move its settings to `expect`, and remove it');
  }
  const expect = root.section('expect', OF_EXPECT, '{ records: { min: 100 }, otherwise: warn }');
  return {
    records: checkRecords(expect),
    fields: checkFields(expect, fields),
    freshMs: expect.read(
      'fresh',
      'must be a duration such as 90m, 26h or 8d, from 1m to 366d',
      (value) => durationWithin(value, '1m', '366d'),
      EXPECT_NOTHING.freshMs,
      addUnit,
    ),
    otherwise: expect.oneOf('otherwise', OTHERWISES, EXPECT_NOTHING.otherwise),
  };
}

function checkRecords(expect: Section): RecordsExpect {
  const records = expect.section('records', OF_RECORDS, '{ min: 100, drop: 20% }');
  const found: RecordsExpect = {
    min: records.number('min', COUNT, null),
    max: records.number('max', COUNT, null),
    drop: records.percent('drop', 100, null),
    rise: records.percent('rise', 1_000_000, null),
    duplicates: records.percent('duplicates', 100, null),
  };
  checkOrder(records, found);
  return found;
}

function checkFields(expect: Section, known: readonly string[] | undefined): Expect['fields'] {
  const fields = expect.free('fields', 'must be a map such as { price: { type: number, filled: 98% } }');
  const names = Object.keys(fields.values);
  if (names.length > MAX_FIELDS) {
    expect.wrong('fields', `must have at most ${MAX_FIELDS} fields, found ${names.length}`);
    return {};
  }
  return Object.fromEntries(
    names.map((name) => {
      checkKnown(fields, [...fields.path, name], name, known);
      if (name.split('.').includes(''))
        fields.wrong(name, 'must be the name of a field, or a path such as address.city');
      return [name, checkField(fields, name)];
    }),
  );
}

/** A field that the source does not read would never be filled. A record has its `id` in any case. */
function checkKnown(section: Section, path: Path, name: string, known: readonly string[] | undefined): void {
  if (known === undefined || known.length === 0) return;
  const first = name.split('.', 1)[0] as string;
  if (name === 'id' || known.includes(name) || known.includes(first)) return;
  const meant = nearest(name, known);
  const what = 'is not one of the `fields`, so it would never be filled';
  if (meant !== undefined) {
    section.checker.wrong(path, `${what}. Did you mean \`${meant}\`?`);
    return;
  }
  const there = known.slice(0, MAX_SHOWN).join(', ') + (known.length > MAX_SHOWN ? ' …' : '');
  section.checker.wrong(path, `${what}. Fields: ${there}`);
}

function checkField(fields: Section, name: string): FieldExpect {
  const field = fields.section(name, OF_FIELD, '{ type: number, filled: 98% }');
  const isNumeric = typeof field.values.min === 'number' || typeof field.values.max === 'number';
  const type = field.oneOf('type', VALUE_TYPES, isNumeric ? 'number' : null, SYNONYMS);
  const found: FieldExpect = {
    type,
    min: checkBound(field, 'min', type),
    max: checkBound(field, 'max', type),
    filled: field.percent('filled', 100, null),
    unique: field.flag('unique', false),
    oneOf: checkOneOf(field, type),
    matches: checkPattern(field, type),
  };
  checkOrder(field, found);
  const isMap = asMap(fields.values[name]) !== undefined || !fields.has(name);
  if (isMap && Object.keys(field.values).length === 0) {
    fields.wrong(name, `must have an expectation, such as { filled: 98% }. Known: ${OF_FIELD.join(', ')}`);
  }
  return found;
}

function checkBound(field: Section, name: 'min' | 'max', type: ValueType | null): number | string | null {
  if (!field.has(name)) return null;
  if (type !== null && DATED.includes(type)) {
    return field.read(
      name,
      `must be a ${type} in quotes, such as "${type === 'date' ? '2026-01-31' : '2026-01-31T12:00:00Z'}"`,
      (value) => (typeof value === 'string' && isOfType(value, type) ? value : undefined),
      null,
    );
  }
  if (type === null || !COUNTED.includes(type)) {
    const needs = [...COUNTED, ...DATED].join(', ');
    field.wrong(name, `needs a \`type\` with an order or a length: ${needs}`);
    return null;
  }
  const isValue = type === 'number' || type === 'integer';
  return isValue
    ? field.read(
        name,
        'must be a number',
        (value) => (Number.isFinite(value) ? (value as number) : undefined),
        null,
        asNumber,
      )
    : field.number(name, COUNT, null);
}

function checkOrder(section: Section, { min, max }: Pick<FieldExpect, 'min' | 'max'>): void {
  const isWrong =
    typeof min === 'number' && typeof max === 'number'
      ? min > max
      : typeof min === 'string' && typeof max === 'string' && compareDates(min, max) > 0;
  if (isWrong) section.wrong('max', `must not be less than \`min\` (${min})`);
}

function checkOneOf(field: Section, type: ValueType | null): FieldExpect['oneOf'] {
  const list = field.read(
    'oneOf',
    `must be a list of 1 to ${MAX_VALUES} strings, numbers or booleans such as [open, closed]`,
    (value) => (Array.isArray(value) && value.length >= 1 && value.length <= MAX_VALUES ? value : undefined),
    null,
  );
  for (const [at, value] of (list ?? []).entries()) {
    const isScalar = ['string', 'number', 'boolean'].includes(typeof value);
    // No record could have a value that is both.
    if (isScalar && (type === null || isOfType(value, type))) continue;
    const must = isScalar ? `of the \`type\` ${type}` : 'a string, number or boolean';
    field.checker.wrong([...field.path, 'oneOf', at], `must be ${must}, found ${describe(value)}`);
    return null;
  }
  return list;
}

function checkPattern(field: Section, type: ValueType | null): string | null {
  const pattern = field.text('matches', 1_000, null);
  if (pattern === null) return null;
  if (type !== null && !TEXTUAL.includes(type)) {
    field.wrong('matches', `is only for texts, and the \`type\` is ${type}`);
    return null;
  }
  try {
    if (patternOf(pattern).programSize() <= MAX_INSTRUCTIONS) return pattern;
    field.wrong('matches', 'repeats too much: each `{n}` repeats its part of the pattern');
    return null;
  } catch (error) {
    if (!(error instanceof EvaluationMistake)) throw error;
    field.wrong('matches', `must be a regular expression of RE2. ${error.message}`);
    return null;
  }
}

/**
 * Reads the settings of earlier versions: `guards: { minRecords: 1, maxDropPercent: 50, required: [email],
 * minFilledPercent: 90 }`.
 */
function checkGuards(root: Section, fields: readonly string[] | undefined): Expect {
  const ofHttp = fields === undefined ? [] : ['required', 'minFilledPercent'];
  const guards = root.section('guards', ['minRecords', 'maxDropPercent', ...ofHttp]);
  const percent = { min: 0, max: 100, whole: false };
  const isFilled = fields !== undefined && (guards.has('required') || guards.has('minFilledPercent'));
  const required = isFilled ? guards.texts('required', { max: MAX_VALUES, example: '[email]' }, null) : null;
  if (isFilled && fields.length === 0) {
    guards.wrong(
      guards.has('required') ? 'required' : 'minFilledPercent',
      'requires `fields`, because only the values of fields listed there are counted',
    );
  }
  for (const [at, name] of (required ?? []).entries()) {
    checkKnown(guards, [...guards.path, 'required', at], name, fields);
  }
  return expectOfGuards(
    {
      minRecords: guards.number('minRecords', COUNT, null),
      maxDropPercent: guards.number('maxDropPercent', percent, null),
      required,
      minFilledPercent: isFilled ? guards.number('minFilledPercent', percent, 100) : null,
    },
    fields,
  );
}
