/** Validates a record that a workflow emits, and writes the JSON text that is stored and sent. */
import { hash } from 'node:crypto';
import { LOSES_DIGITS, parseAsWritten } from '../std/exact-json.ts';
import { printable } from '../std/printable.ts';
import type { Compare } from './workflow.ts';

/** Maximum length of a record's JSON text. */
export const MAX_RECORD_BYTES = 1_048_576;
/**
 * Maximum nesting depth of a record. Parsers of other languages accept little more by default (PHP 512, Python 1,000).
 * A record with half a million levels blocked the event loop for seconds whenever the record was inspected.
 */
export const MAX_LEVELS = 500;
/** Maximum number of fields of a record. A field costs far more than its bytes, and nobody reads so many columns. */
const MAX_FIELDS = 5_000;
/** Maximum length of a record id, in characters. */
const MAX_RECORD_ID = 1_024;

/** An invalid record; the message says why. `field` is null if the record as a whole is invalid. */
export class InvalidRecordError extends Error {
  override readonly name = 'InvalidRecordError';
  readonly field: string | null;

  constructor(message: string, field: string | null = null) {
    super(message);
    this.field = field;
  }
}

/** A record as it is stored. */
export interface ReadRecord {
  id: string;
  /** JSON text, which contains `id`. */
  body: string;
  /** Length of `body` in UTF-8. */
  bytes: number;
  /** The record that `body` is the text of. Numbers that a double would round are `JSON.rawJSON`. */
  value: Readonly<Record<string, unknown>>;
  /** Field names, in order. */
  fields: string[];
}

/**
 * Validates one record and writes the JSON text that readers get. `id` becomes a string. If there are `key` fields,
 * `id` is derived from them: it is the value of a single key field, or a hash of several. `name` and `email` become
 * strings if they are numbers or booleans, are dropped if null, and are rejected if they are objects or arrays. All
 * other fields stay unchanged.
 *
 * @param line the record's JSON text as the source wrote it
 * @param compare by text, all numbers stay as they are written
 * @throws InvalidRecordError
 */
export function readRecord(line: string, key: readonly string[], compare: Compare = 'value'): ReadRecord {
  let record = normalized(parseObject(line, JSON.parse), key);
  // If serializing the record gives the same text again, no number has lost digits.
  if (record.body !== line && (compare === 'text' || LOSES_DIGITS.test(line))) {
    record = normalized(parseObject(line, parseAsWritten), key);
  }
  const bytes = Buffer.byteLength(record.body);
  if (bytes > MAX_RECORD_BYTES) {
    throw new InvalidRecordError(`the record has ${bytes} bytes; at most ${MAX_RECORD_BYTES} are allowed`);
  }
  return { ...record, bytes };
}

function normalized(record: Record<string, unknown>, key: readonly string[]): Omit<ReadRecord, 'bytes'> {
  const id = idOf(record, key);
  const fields = Object.keys(record);
  if (isNormal(record, id, fields)) return { id, body: JSON.stringify(record), value: record, fields };
  const { id: _id, ...rest } = record;
  const clean: Record<string, unknown> = { id };
  for (const [field, value] of Object.entries(rest)) {
    const kept = field === 'name' || field === 'email' ? asText(field, value) : value;
    if (kept === undefined) continue;
    // A plain assignment to __proto__ would set the prototype and lose the field.
    if (field === '__proto__') Object.defineProperty(clean, field, { value: kept, enumerable: true });
    else clean[field] = kept;
  }
  return { id, body: JSON.stringify(clean), value: clean, fields: Object.keys(clean) };
}

/** Whether the record needs no changes: its first field is its id, and `name` and `email` are strings. */
function isNormal(record: Record<string, unknown>, id: string, fields: readonly string[]): boolean {
  const { id: own, name = '', email = '' } = record;
  return fields[0] === 'id' && own === id && typeof name === 'string' && typeof email === 'string';
}

function parseObject(line: string, parse: (text: string) => unknown): Record<string, unknown> {
  let value: unknown;
  try {
    value = parse(line);
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidRecordError(TOO_DEEP);
    throw new InvalidRecordError(
      `the record is not valid JSON (${(error as Error).message}): ${excerpt(line)}`,
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidRecordError(`the record is not a JSON object: ${excerpt(line)}`);
  }
  // Each level takes at least two characters.
  if (line.length > 2 * MAX_LEVELS && countAtMost(line, /[[{]/g, MAX_LEVELS) === MAX_LEVELS) {
    if (isNestedDeeper(value, MAX_LEVELS)) throw new InvalidRecordError(TOO_DEEP);
  }
  checkFieldCount(line, value as Record<string, unknown>);
  return value as Record<string, unknown>;
}

const TOO_DEEP = `the lists and objects of the record are nested too deeply; at most ${MAX_LEVELS} levels are allowed`;

function checkFieldCount(line: string, record: Record<string, unknown>): void {
  // Every field needs a colon, so counting colons is enough for most records, and cheap.
  if (line.length < 2 * MAX_FIELDS || countAtMost(line, /:/g, MAX_FIELDS + 1) <= MAX_FIELDS) return;
  const count = Object.keys(record).length;
  if (count <= MAX_FIELDS) return;
  throw new InvalidRecordError(
    `the record has ${count} fields; at most ${MAX_FIELDS} are allowed. Use a list, or split the record into several records`,
  );
}

/** Counts the matches in a text, but stops counting at `bound`. */
function countAtMost(text: string, what: RegExp, bound: number): number {
  let count = 0;
  for (what.lastIndex = 0; count < bound && what.test(text); ) count += 1;
  return count;
}

/**
 * The id of a record: the value of a single key field, a hash of several key fields, or without key fields its own
 * `id`.
 */
export function idOf(record: Record<string, unknown>, key: readonly string[]): string {
  const fields = key.length === 0 ? ['id'] : key;
  const values = fields.map((field) => scalarOf(record, field));
  const [only] = values;
  if (values.length === 1 && only !== undefined) return checkedId(String(only), fields[0] ?? 'id');
  // Hashing a JSON list makes ["a","bc"] and ["ab","c"] differ.
  return hash('sha256', JSON.stringify(values)).slice(0, 32);
}

function scalarOf(record: Record<string, unknown>, field: string): string | number | boolean {
  const value = Object.hasOwn(record, field) ? record[field] : undefined;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (JSON.isRawJSON(value)) return value.rawJSON;
  const found = value === undefined ? 'is missing' : value === null ? 'is null' : 'is an object or an array';
  const advice = field === 'id' ? '. Emit an `id`, or name the fields that identify a record in `key`' : '';
  throw new InvalidRecordError(
    `the field \`${field}\`, which identifies the record, ${found}${advice}`,
    field,
  );
}

function checkedId(id: string, field: string): string {
  if (id === '') throw new InvalidRecordError(`the field \`${field}\` is empty`, field);
  if (id.includes('\u0000'))
    throw new InvalidRecordError(`the field \`${field}\` contains a NUL character`, field);
  // A lone surrogate has no UTF-8 encoding. The database would store two ids with different lone surrogates as the same
  // text.
  if (!id.isWellFormed())
    throw new InvalidRecordError(`the field \`${field}\` is not valid Unicode (a lone surrogate)`, field);
  if (id.length > MAX_RECORD_ID) {
    throw new InvalidRecordError(`the field \`${field}\` is longer than ${MAX_RECORD_ID} characters`, field);
  }
  return id;
}

function asText(field: string, value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (value === null) return undefined;
  if (JSON.isRawJSON(value)) return value.rawJSON;
  throw new InvalidRecordError(`the field \`${field}\` must be a string, found an object or an array`, field);
}

function excerpt(line: string): string {
  return printable(line.length > 80 ? `${line.slice(0, 80)}…` : line);
}

/** Checks the depth level by level, because a recursion would overflow the stack. */
export function isNestedDeeper(value: object, levels: number): boolean {
  let level: object[] = [value];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > levels) return true;
    level = level.flatMap((one) =>
      Object.values(one).filter(
        (inner): inner is object => typeof inner === 'object' && inner !== null && !JSON.isRawJSON(inner),
      ),
    );
  }
  return false;
}
