/** Which fields of records are columns, in which order, and how records are sorted. */
import type { DataRecord } from '../../../../client/src/flowhook-client.ts';
import { namesFrom } from './span.ts';

/** The number of columns by default. */
const SHOWN = 10;
/** Further fields are visible only in the detail view. */
const MAX_FIELDS = 300;
/** The number of records that are searched for fields. */
const SAMPLED = 500;
const FIRST = ['id', 'name', 'email'];

/** The fields of the first records in order of appearance, after `id`, `name` and `email`. */
export function fieldsOf(records: readonly DataRecord[]): string[] {
  const fields = new Set<string>();
  for (const record of records.slice(0, SAMPLED)) {
    for (const name of Object.keys(record)) if (fields.size < MAX_FIELDS) fields.add(name);
  }
  return [
    ...FIRST.filter((name) => fields.has(name)),
    ...[...fields].filter((name) => !FIRST.includes(name)),
  ];
}

/** The columns in the address. Undefined means the default columns. */
export function chosenFields(value: string | undefined): string[] | undefined {
  return value === undefined ? undefined : namesFrom(value);
}

/** Always includes the id, which opens the record. */
export function shownFields(fields: readonly string[], chosen: readonly string[] | undefined): string[] {
  if (chosen === undefined) return fields.slice(0, SHOWN);
  return ['id', ...fields.filter((name) => name !== 'id' && chosen.includes(name))];
}

/** @param by a field, or `-field` for descending; undefined keeps the order */
export function sorted(records: readonly DataRecord[], by: string | undefined): readonly DataRecord[] {
  if (by === undefined) return records;
  const [field, sign] = by.startsWith('-') ? [by.slice(1), -1] : [by, 1];
  return records.toSorted((a, b) => compared(valueIn(a, field), valueIn(b, field), sign));
}

/** Compares numbers by value and anything else as text; missing values come last in both directions. */
function compared(a: unknown, b: unknown, sign: number): number {
  const [isMissingA, isMissingB] = [a === undefined || a === null, b === undefined || b === null];
  if (isMissingA || isMissingB) return Number(isMissingA) - Number(isMissingB);
  if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
  return sign * COLLATOR.compare(inWords(a), inWords(b));
}

const COLLATOR = new Intl.Collator('en', { numeric: true });

/** Reads only own fields, because a record without a field `constructor` inherits one. */
export function valueIn(record: DataRecord, field: string): unknown {
  return Object.hasOwn(record, field) ? record[field] : undefined;
}

/** A value on one line. */
export function inWords(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** An http or https URL; null for anything else, such as `javascript:`. */
export function addressIn(value: unknown): string | null {
  return typeof value === 'string' && /^https?:\/\/\S+$/i.test(value) && URL.canParse(value) ? value : null;
}
