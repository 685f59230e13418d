/** Which fields of records are shown, in which order, and how the records are sorted. */
import type { DataRecord } from 'flowhook-client';

/** So many columns are read at a glance; the others can be chosen. */
const SHOWN = 10;
/** Records of more fields than this are read one by one. */
const MAX_FIELDS = 300;
/** What all records look like is seen in these. */
const LOOKED_AT = 500;
const FIRST = ['id', 'name', 'email'];

/** All fields, as the first records bring them; those that every record may have come first. */
export function fieldsOf(records: readonly DataRecord[]): string[] {
  const fields = new Set<string>();
  for (const record of records.slice(0, LOOKED_AT)) {
    for (const name of Object.keys(record)) if (fields.size < MAX_FIELDS) fields.add(name);
  }
  return [
    ...FIRST.filter((name) => fields.has(name)),
    ...[...fields].filter((name) => !FIRST.includes(name)),
  ];
}

/** Those of the address: names with commas between, each encoded; undefined: nothing is chosen. */
export function chosenFields(value: string | undefined): string[] | undefined {
  return value?.split(',').map((name) => {
    try {
      return decodeURIComponent(name);
    } catch {
      return name;
    }
  });
}

/** The id always, so that every row can be told and opened. */
export function shownFields(fields: readonly string[], chosen: readonly string[] | undefined): string[] {
  if (chosen === undefined) return fields.slice(0, SHOWN);
  return ['id', ...fields.filter((name) => name !== 'id' && chosen.includes(name))];
}

/** @param by a field, or `-field` for the reverse; undefined: as they are */
export function sorted(records: readonly DataRecord[], by: string | undefined): readonly DataRecord[] {
  if (by === undefined) return records;
  const [field, sign] = by.startsWith('-') ? [by.slice(1), -1] : [by, 1];
  return records.toSorted((a, b) => compared(valueIn(a, field), valueIn(b, field), sign));
}

/** Numbers by size, the rest as words; what is not there comes last in both directions. */
function compared(a: unknown, b: unknown, sign: number): number {
  const [isMissingA, isMissingB] = [a === undefined || a === null, b === undefined || b === null];
  if (isMissingA || isMissingB) return Number(isMissingA) - Number(isMissingB);
  if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
  return sign * WORDS.compare(inWords(a), inWords(b));
}

const WORDS = new Intl.Collator('en', { numeric: true });

/** undefined: the record has no such field, whatever it is called: every object has a `constructor`. */
export function valueIn(record: DataRecord, field: string): unknown {
  return Object.hasOwn(record, field) ? record[field] : undefined;
}

/** A value in a line. */
export function inWords(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** An address that may be followed; nothing else may, whatever it says. */
export function addressIn(value: unknown): string | null {
  return typeof value === 'string' && /^https?:\/\/\S+$/i.test(value) && URL.canParse(value) ? value : null;
}
