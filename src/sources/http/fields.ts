/** Extracts the fields of a record from one part of a response, and counts how often each field is filled. */
import type { Field } from '../../model/http-source.ts';
import type { Grammar, Lookup } from './paths.ts';

/** The outcome of reading one field. `unread` is a text that could not be converted to a date, number or URL. */
type Outcome = 'filled' | 'empty' | { unread: string };

export interface FieldReader {
  names: string[];
  /** Adds the fields to a record. Empty fields without a default are left out. */
  read(
    part: unknown,
    input: { base: string; record: Record<string, unknown>; count(name: string, outcome: Outcome): void },
  ): void;
}

/**
 * Returns the pieces of a template such as `{{first}} {{last}}`. Odd indexes hold the content of braces, and even
 * indexes hold the text around the braces. This does not use a regular expression, because a regular expression would
 * scan to the end of the text from each unclosed `{{`.
 */
export function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (;;) {
    const open = text.indexOf('{{', from);
    // The search starts one character later, because braces must contain at least one character.
    const close = open === -1 ? -1 : text.indexOf('}}', open + 3);
    if (close === -1) return [...pieces, text.slice(from)];
    pieces.push(text.slice(from, open), text.slice(open + 2, close));
    from = close + 2;
  }
}

/** Compiles a path, or a template of paths such as `{{first}} {{last}}`. */
export function compileText(
  text: string,
  grammar: Grammar,
  options: { trim: boolean },
): { find: Lookup; isTemplate: boolean } {
  const pieces = piecesOf(text);
  if (pieces.length === 1) return { find: grammar.compile(text, options), isTemplate: false };
  const lookups = pieces.map((piece, at) =>
    at % 2 === 1 ? grammar.compile(piece.trim(), options) : undefined,
  );
  return {
    isTemplate: true,
    find(part) {
      let found = false;
      const filled = pieces.map((piece, at) => {
        const values = lookups[at]?.(part);
        if (values === undefined) return piece;
        const value = textOfValue(values[0]);
        if (value !== '') found = true;
        return value;
      });
      // If all placeholders are empty, the text between them is not a value.
      return found ? [filled.join('').trim()] : [];
    },
  };
}

/** @param options.trim whether texts are trimmed unless the field sets `trim` */
export function compileFields(
  fields: Readonly<Record<string, Field>>,
  grammar: Grammar,
  options: { trim: boolean },
): FieldReader {
  const readers = Object.entries(fields).map(([name, field]) => ({
    name,
    read: compileField(field, grammar, options),
  }));
  return {
    names: readers.map(({ name }) => name),
    read(part, { base, record, count }) {
      for (const { name, read } of readers) {
        const { value, outcome } = read(part, base);
        count(name, outcome);
        if (value !== undefined) setField(record, name, value);
      }
    },
  };
}

/** Sets a field of a record. For a field named `__proto__`, a plain assignment would set the prototype instead. */
export function setField(record: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });
  else record[name] = value;
}

interface Read {
  value: unknown;
  outcome: Outcome;
}

function compileField(
  field: Field,
  grammar: Grammar,
  options: { trim: boolean },
): (part: unknown, base: string) => Read {
  const trim = field.trim ?? options.trim;
  const { find, isTemplate } = compileText(field.from, grammar, { trim });
  const absolute = field.absolute ?? (!isTemplate && grammar.isLink(field.from));
  const pattern = field.replace === null ? undefined : new RegExp(field.replace[0], 'gu');
  const plain =
    !field.trim && pattern === undefined && !absolute && field.number === null && field.date === null;

  function convert(raw: unknown, base: string): Read {
    if (plain) return { value: raw, outcome: isEmpty(raw) ? 'empty' : 'filled' };
    // Lists and maps are not converted. Numbers too large for a double are kept as raw JSON, and are not converted
    // either.
    if (typeof raw === 'object' && raw !== null && (field.number !== null || !JSON.isRawJSON(raw)))
      return { value: raw, outcome: 'filled' };
    if (field.number !== null && typeof raw === 'number') return { value: raw, outcome: 'filled' };
    let text = textOfValue(raw);
    if (absolute && text.trim() !== '') {
      // The URL is made absolute before `replace` applies, because `replace` may remove a scheme such as `mailto:`.
      const url = URL.parse(text.trim(), base);
      if (url === null) return { value: undefined, outcome: { unread: text } };
      text = url.href;
    }
    if (pattern !== undefined) text = text.replace(pattern, field.replace?.[1] ?? '');
    if (field.trim ?? (options.trim || pattern !== undefined)) text = text.trim();
    if (text === '') return { value: undefined, outcome: 'empty' };
    const converted =
      field.number !== null
        ? readNumber(text, field.number)
        : field.date !== null
          ? readDate(text, field.date)
          : text;
    return converted === undefined
      ? { value: undefined, outcome: { unread: text } }
      : { value: converted, outcome: 'filled' };
  }

  return (part, base) => {
    const found = find(part);
    const reads = (field.all ? found : found.slice(0, 1)).map((raw) => convert(raw, base));
    const filled = reads.filter(({ outcome }) => outcome === 'filled').map(({ value }) => value);
    if (filled.length > 0) return { value: field.all ? filled : filled[0], outcome: 'filled' };
    return {
      value: field.default ?? undefined,
      outcome: reads.find(({ outcome }) => typeof outcome === 'object')?.outcome ?? 'empty',
    };
  };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** Converts a value to text. Null becomes an empty text, and lists and maps become JSON. */
export function textOfValue(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const UNITS = ['YYYY', 'YY', 'MMMM', 'MMM', 'MM', 'M', 'DD', 'D', 'HH', 'H', 'mm', 'ss'] as const;
const TOKEN = new RegExp(UNITS.join('|'), 'g');
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Characters that may separate groups of thousands, besides the point or comma that is not the decimal mark. */
const GROUPS = " \u00a0\u2009\u202f'’";
const NUMBERS = { '.': numbers('.', ','), ',': numbers(',', '.') };

/**
 * Reads the number in a text such as `1.234,50 €`. Groups of thousands must have three digits: with the decimal mark
 * `.`, `1,50` is not a number.
 *
 * @returns undefined if the text does not contain exactly one number, or the number is too large for a double
 */
export function readNumber(text: string, decimal: '.' | ','): number | undefined {
  const [found, second] = text.replace(/\u2212/g, '-').matchAll(NUMBERS[decimal]);
  if (found?.groups === undefined || second !== undefined) return undefined;
  const { sign = '', whole = '', part = '', exponent = '' } = found.groups;
  const number = Number(`${sign}${whole.replace(/\D/g, '')}${part.replace(decimal, '.')}${exponent}`);
  if (exponent === '' && Math.abs(number) > Number.MAX_SAFE_INTEGER) return undefined;
  return Number.isFinite(number) ? number : undefined;
}

function numbers(decimal: string, group: string): RegExp {
  const thousands = `\\d{1,3}(?<group>[${group}${GROUPS}])\\d{3}(?:\\k<group>\\d{3})*(?!\\d)`;
  const part = `[${decimal}]\\d+`;
  return new RegExp(
    `(?<sign>[-+]?)[${GROUPS}]?(?:(?<whole>${thousands}|\\d+)(?<part>${part})?|(?<part>${part}))(?<exponent>e[-+]?\\d+)?`,
    'gi',
  );
}

/**
 * Parses a date by a pattern of YYYY, YY, MMMM or MMM (English names), MM, M, DD, D, HH, H, mm and ss. With `auto`, a
 * date in ISO 8601, in the format of HTTP and mail, or in epoch seconds or milliseconds.
 *
 * @returns ISO 8601: a day (`2026-01-31`) if the pattern has no hour, else a time in UTC; undefined if the text does not
 *   match or there is no such time
 */
export function readDate(text: string, pattern: string): string | undefined {
  return pattern === 'auto' ? readAnyDate(text.trim()) : byPattern(text.trim(), pattern);
}

function readAnyDate(text: string): string | undefined {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return byPattern(text, 'YYYY-MM-DD');
  if (/^\d{10}$/.test(text)) return new Date(Number(text) * 1_000).toISOString();
  if (/^\d{13}$/.test(text)) return new Date(Number(text)).toISOString();
  // Other forms that `Date.parse` accepts depend on the time zone of the machine.
  if (
    !/^\d{4}-\d\d-\d\d[T ].*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) &&
    !/^\w{3}, .*(?:GMT|[+-]\d{4})$/.test(text)
  ) {
    return undefined;
  }
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

function byPattern(text: string, pattern: string): string | undefined {
  const units: string[] = [];
  const form = pattern
    .split(new RegExp(`(${TOKEN.source})`))
    .map((part) => {
      if (!(UNITS as readonly string[]).includes(part)) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      units.push(part);
      return part.startsWith('MMM')
        ? '([A-Za-z]+)'
        : part === 'YYYY'
          ? '(\\d{4})'
          : part.length === 2
            ? '(\\d\\d)'
            : '(\\d\\d?)';
    })
    .join('');
  const found = new RegExp(`^${form}$`).exec(text);
  if (found === null) return undefined;
  const read = { Y: 1970, M: 1, D: 1, H: 0, m: 0, s: 0 };
  for (const [position, unit] of units.entries()) {
    const value = found[position + 1] as string;
    const number = unit.startsWith('MMM')
      ? MONTHS.indexOf(value.slice(0, 3).toLowerCase()) + 1
      : Number(value);
    read[unit[0] as keyof typeof read] = unit === 'YY' ? 2000 + number : number;
  }
  const at = new Date(Date.UTC(read.Y, read.M - 1, read.D, read.H, read.m, read.s));
  // The date parts are compared, because values out of range roll over to the next unit, and because `Date.UTC` maps
  // years below 100 to the 20th century.
  const isSame =
    at.getUTCFullYear() === read.Y &&
    at.getUTCMonth() === read.M - 1 &&
    at.getUTCDate() === read.D &&
    at.getUTCHours() === read.H &&
    at.getUTCMinutes() === read.m &&
    at.getUTCSeconds() === read.s;
  if (!isSame) return undefined;
  const hasTime = units.some((unit) => unit.startsWith('H'));
  return hasTime ? at.toISOString() : at.toISOString().slice(0, 10);
}

/** Returns whether `readDate` accepts a text as its pattern. */
export function isDatePattern(pattern: string): boolean {
  return pattern === 'auto' || (pattern.match(TOKEN)?.length ?? 0) > 0;
}

export interface FillCount {
  /** Counts a record. */
  record(): void;
  /** Counts the outcome for one field of a record. */
  field(name: string, outcome: Outcome): void;
  /** Returns how often each field was filled, in the order of the definition. */
  filled(): ReadonlyMap<string, number>;
  /** Returns log lines about fields that were not filled in every record. */
  sentences(): string[];
}

const EXAMPLE = 60;

export function countFills(names: readonly string[]): FillCount {
  const counts = new Map(names.map((name) => [name, 0]));
  const unread = new Map<string, { count: number; example: string }>();
  let records = 0;

  return {
    record: () => {
      records += 1;
    },
    field(name, outcome) {
      if (outcome === 'filled') counts.set(name, (counts.get(name) ?? 0) + 1);
      else if (outcome !== 'empty') {
        const before = unread.get(name);
        unread.set(name, {
          count: (before?.count ?? 0) + 1,
          example: before?.example ?? outcome.unread.slice(0, EXAMPLE),
        });
      }
    },
    filled: () => counts,
    sentences() {
      if (records === 0) return [];
      return [...counts].flatMap(([name, count]) => {
        const wrong = unread.get(name);
        const said =
          wrong === undefined
            ? ''
            : `; ${wrong.count} could not be converted, such as ${JSON.stringify(wrong.example)}`;
        if (count === 0) return [`The field \`${name}\` was found in none of ${records} records${said}`];
        return count < records
          ? [`The field \`${name}\` was found in ${count} of ${records} records${said}`]
          : [];
      });
    },
  };
}
