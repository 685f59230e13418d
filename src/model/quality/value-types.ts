/** Recognizes the types that `expect` names, and that profiles count. */
import { isDay } from '../../std/clock.ts';
import type { ValueType } from './expect.ts';

/** Maximum length of an email address, in characters (RFC 5321), and of an ISO 8601 time. */
const MAX_EMAIL = 254;
const MAX_TIME = 40;
// Each part of these patterns excludes the character that ends the part, so their time is linear in the text.
const URL_TEXT = /^https?:\/\/[^\s/?#]+(?:[/?#]\S*)?$/i;
const EMAIL = /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/;
// After the ten characters of the day.
const TIME =
  /^.{10}[T ]([01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?$/i;

/** Whether a value of JSON has the type. A number that a double would round is an object: see `readRecord`. */
export function isOfType(value: unknown, type: ValueType): boolean {
  switch (type) {
    case 'text':
      return typeof value === 'string';
    case 'number':
      return typeof value === 'number' || JSON.isRawJSON(value);
    case 'integer':
      return Number.isInteger(value) || (JSON.isRawJSON(value) && /^-?\d+$/.test(value.rawJSON));
    case 'boolean':
      return typeof value === 'boolean';
    case 'list':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
    case 'url':
      return typeof value === 'string' && URL_TEXT.test(value);
    case 'email':
      return typeof value === 'string' && value.length <= MAX_EMAIL && EMAIL.test(value);
    case 'date':
      return typeof value === 'string' && value.length === 10 && isDay(value);
    case 'datetime':
      return typeof value === 'string' && isTime(value);
  }
}

/**
 * The most specific type of a text. Looks at single characters first, because patterns for every text of a run would
 * take a tenth of its time.
 */
export function textTypeOf(text: string): ValueType & ('text' | 'url' | 'email' | 'date' | 'datetime') {
  const first = text.charCodeAt(0);
  if (first >= 48 && first <= 57 && text.charCodeAt(4) === 45 && text.charCodeAt(7) === 45) {
    if (text.length === 10) return isDay(text) ? 'date' : 'text';
    return isTime(text) ? 'datetime' : 'text';
  }
  // `h` or `H`, and `:` after http or https.
  if ((first | 32) === 104 && (text.charCodeAt(4) === 58 || text.charCodeAt(5) === 58)) {
    return URL_TEXT.test(text) ? 'url' : 'text';
  }
  return text.length <= MAX_EMAIL && text.includes('@') && EMAIL.test(text) ? 'email' : 'text';
}

/**
 * Compares two dates or times. Dates are compared as days, times as instants, in UTC unless they have an offset.
 *
 * @returns a negative number, 0, or a positive number
 */
export function compareDates(a: string, b: string): number {
  if (a.length === 10 && b.length === 10) return a < b ? -1 : a > b ? 1 : 0;
  return instantOf(a) - instantOf(b);
}

/** @returns epoch milliseconds */
function instantOf(text: string): number {
  const hasOffset = text.length > 10 && /(?:Z|[+-]\d\d(?::?\d\d)?)$/i.test(text.slice(11));
  const iso = text
    .replace(' ', 'T')
    .replace(',', '.')
    .replace(/([+-]\d\d)(\d\d)?$/, offset);
  return Date.parse(hasOffset || text.length === 10 ? iso : `${iso}Z`);
}

function offset(found: string, hours: string, minutes: string | undefined, at: number): string {
  // The day of a date without time also ends in `-31`.
  return at <= 10 ? found : `${hours}:${minutes ?? '00'}`;
}

function isTime(text: string): boolean {
  return text.length > 10 && text.length <= MAX_TIME && isDay(text) && TIME.test(text);
}
