/** Converts texts of fields to numbers and dates. */

const UNITS = ['YYYY', 'YY', 'MMMM', 'MMM', 'MM', 'M', 'DD', 'D', 'HH', 'H', 'mm', 'ss'] as const;
const TOKEN = new RegExp(UNITS.join('|'), 'g');
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Characters that may group thousands, besides the point or comma that is not the decimal mark. */
const GROUPS = " \u00a0\u2009\u202f'’";
const NUMBERS = { '.': numbers('.', ','), ',': numbers(',', '.') };

/**
 * The number in a text such as `1.234,50 €`. Thousands are grouped by threes: with the decimal mark `.`, `1,50` is not a
 * number.
 *
 * @returns undefined when the text does not hold exactly one number, or one that a double would change
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
 * @returns ISO 8601: a day (`2026-01-31`) if the pattern has no hour, else a time in UTC; undefined when the text does
 *   not match or there is no such time
 */
export function readDate(text: string, pattern: string): string | undefined {
  return pattern === 'auto' ? readAnyDate(text.trim()) : byPattern(text.trim(), pattern);
}

function readAnyDate(text: string): string | undefined {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return byPattern(text, 'YYYY-MM-DD');
  if (/^\d{10}$/.test(text)) return new Date(Number(text) * 1_000).toISOString();
  if (/^\d{13}$/.test(text)) return new Date(Number(text)).toISOString();
  // Other forms that Date.parse accepts depend on the machine's time zone.
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
  // Values out of range roll over to the next unit, and `Date.UTC` takes years below 100 for those of the last century.
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

/** Whether a text is a pattern for `readDate`. */
export function isDatePattern(pattern: string): boolean {
  return pattern === 'auto' || (pattern.match(TOKEN)?.length ?? 0) > 0;
}
