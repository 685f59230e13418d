/** A record: what a workflow may emit, and the JSON text that is stored and sent for it. */
import { hash } from 'node:crypto';
import { printable } from '../std/printable.ts';

declare global {
  // Node has these (TC39 "JSON.parse source text access"); TypeScript's library does not describe them yet.
  interface JSON {
    rawJSON(text: string): RawJson;
    isRawJSON(value: unknown): value is RawJson;
  }
}
interface RawJson {
  rawJSON: string;
}

/** A record is at most this long as JSON text. */
export const MAX_RECORD_BYTES = 1_048_576;
/**
 * Levels of lists and objects in a record. Parsers of other languages take few more (PHP 512, Python 1,000 by default), and
 * a record of half a million levels kept an event loop busy for seconds wherever it was looked into.
 */
const MAX_LEVELS = 500;
/** Fields of a record: each costs far more than its bytes, and a table of as many columns is read by nobody. */
const MAX_FIELDS = 5_000;
/** A record id is at most this long. */
const MAX_RECORD_ID = 1_024;

/** A record that cannot be accepted; the message says why. `field` is null when the whole record is at fault. */
export class InvalidRecordError extends Error {
  override readonly name = 'InvalidRecordError';
  readonly field: string | null;

  constructor(message: string, field: string | null = null) {
    super(message);
    this.field = field;
  }
}

/** A record as it is stored: its id, its JSON text with that id in it, and what that text has. */
export interface ReadRecord {
  id: string;
  body: string;
  /** The length of `body` in UTF-8. */
  bytes: number;
  /** The names of its fields, in order. */
  fields: string[];
}

/**
 * Checks one record and writes it as the JSON text that readers get. `id` becomes a string, or is made from the
 * `key` fields: alone as itself, several as a hash. `name` and `email` become strings where they are numbers or
 * booleans, are dropped where null, and are refused where they are objects or arrays.
 * Everything else passes unchanged.
 *
 * @param line the record's JSON text as the source wrote it
 * @throws InvalidRecordError
 */
export function readRecord(line: string, key: readonly string[]): ReadRecord {
  const record = parseObject(line);
  checkFieldCount(line, record);
  const id = idOf(record, key);
  const { id: _id, ...rest } = record;
  const clean: Record<string, unknown> = { id };
  for (const [field, value] of Object.entries(rest)) {
    const kept = field === 'name' || field === 'email' ? asText(field, value) : value;
    if (kept === undefined) continue;
    // A plain assignment to __proto__ would set the prototype and lose the field.
    if (field === '__proto__') Object.defineProperty(clean, field, { value: kept, enumerable: true });
    else clean[field] = kept;
  }
  const body = JSON.stringify(clean);
  const bytes = Buffer.byteLength(body);
  if (bytes > MAX_RECORD_BYTES) {
    throw new InvalidRecordError(`the record is ${bytes} bytes long; at most ${MAX_RECORD_BYTES} are taken`);
  }
  return { id, body, bytes, fields: Object.keys(clean) };
}

/** Parses JSON text such that writing it again keeps every number as it was, even those that a double would change. */
export function parseExactly(text: string): unknown {
  return LOSES_DIGITS.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
}

function parseObject(line: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseExactly(line);
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidRecordError(TOO_DEEP);
    throw new InvalidRecordError(`it is not valid JSON (${(error as Error).message}): ${excerpt(line)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidRecordError(`it is not a JSON object: ${excerpt(line)}`);
  }
  if (countAtMost(line, /[[{]/g, MAX_LEVELS) === MAX_LEVELS && isNestedDeeper(value, MAX_LEVELS)) {
    throw new InvalidRecordError(TOO_DEEP);
  }
  return value as Record<string, unknown>;
}

const TOO_DEEP = `its lists and objects are nested too deeply; at most ${MAX_LEVELS} levels are taken`;

function checkFieldCount(line: string, record: Record<string, unknown>): void {
  // Each field has a colon: few records have so many.
  if (countAtMost(line, /:/g, MAX_FIELDS + 1) <= MAX_FIELDS) return;
  const count = Object.keys(record).length;
  if (count <= MAX_FIELDS) return;
  throw new InvalidRecordError(
    `the record has ${count} fields; at most ${MAX_FIELDS} are taken. Put lists into a field, or make several records`,
  );
}

/** How often this occurs in the text; counting ends at the bound. Few records have as many brackets as levels are allowed. */
function countAtMost(text: string, what: RegExp, bound: number): number {
  let count = 0;
  for (what.lastIndex = 0; count < bound && what.test(text); ) count += 1;
  return count;
}

/** Numbers that may not survive a round trip through a double: 16 digits in a row or around a point, or a large exponent. */
export const LOSES_DIGITS = /[\d.]{16}|[eE][+-]?\d{3}/;

/** Keeps the text of such a number (JSON.rawJSON), so that it passes through unchanged. */
function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return JSON.stringify(value) === context.source ? value : JSON.rawJSON(context.source);
}

/**
 * The id of a record: of one key field its value, of several a hash, of none its own `id`.
 *
 * @throws InvalidRecordError
 */
export function idOf(record: Record<string, unknown>, key: readonly string[]): string {
  const fields = key.length === 0 ? ['id'] : key;
  const values = fields.map((field) => scalarOf(record, field));
  const [only] = values;
  if (values.length === 1 && only !== undefined) return checkedId(String(only), fields[0] ?? 'id');
  // Several fields are hashed as a JSON list, so that ["a","bc"] and ["ab","c"] differ.
  return hash('sha256', JSON.stringify(values)).slice(0, 32);
}

function scalarOf(record: Record<string, unknown>, field: string): string | number | boolean {
  const value = Object.hasOwn(record, field) ? record[field] : undefined;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (JSON.isRawJSON(value)) return value.rawJSON;
  const found = value === undefined ? 'is missing' : value === null ? 'is null' : 'is an object or an array';
  const advice = field === 'id' ? '. Emit one, or name the fields that make it in `key`' : '';
  throw new InvalidRecordError(
    `the field \`${field}\`, which makes the record's id, ${found}${advice}`,
    field,
  );
}

function checkedId(id: string, field: string): string {
  if (id === '') throw new InvalidRecordError(`the field \`${field}\` is empty`, field);
  if (id.includes('\u0000'))
    throw new InvalidRecordError(`the field \`${field}\` holds a NUL character`, field);
  // Half a surrogate pair has no UTF-8: the database would take two different ids for one.
  if (!id.isWellFormed())
    throw new InvalidRecordError(
      `the field \`${field}\` is not valid Unicode (half a surrogate pair)`,
      field,
    );
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

/** Level by level, because a recursion would end the stack. */
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
