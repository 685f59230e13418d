/** What becomes of a text on its way into a field: a number or a date as programs read them. */

const UNITS = ['YYYY', 'YY', 'MMMM', 'MMM', 'MM', 'M', 'DD', 'D', 'HH', 'H', 'mm', 'ss'] as const;
const TOKEN = new RegExp(UNITS.join('|'), 'g');
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** What stands between thousands beside the mark that is not the decimal one. */
const GROUPS = " \u00a0\u2009\u202f'’";
const NUMBERS = { '.': numbers('.', ','), ',': numbers(',', '.') };

/**
 * A number in a text such as `1.234,50 €`, or undefined when there is not exactly one, or one that a double would
 * change. Marks between thousands are such only before three digits: with the decimal mark `.`, `1,50` is none.
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
 * Reads a date by a pattern of YYYY, YY, MMMM or MMM (English names), MM, M, DD, D, HH, H, mm and ss; or, with
 * `auto`, one in ISO 8601, of HTTP and mail, or in epoch seconds or milliseconds.
 *
 * @returns ISO 8601: a day (`2026-01-31`) where the pattern has no hour, else a time in UTC; undefined when it does
 *   not fit or there is no such day
 */
export function readDate(text: string, pattern: string): string | undefined {
  return pattern === 'auto' ? readAnyDate(text.trim()) : byPattern(text.trim(), pattern);
}

function readAnyDate(text: string): string | undefined {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return byPattern(text, 'YYYY-MM-DD');
  if (/^\d{10}$/.test(text)) return new Date(Number(text) * 1_000).toISOString();
  if (/^\d{13}$/.test(text)) return new Date(Number(text)).toISOString();
  // Anything else that Date.parse takes depends on the machine's time zone.
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
  if (at.getUTCMonth() !== read.M - 1 || at.getUTCDate() !== read.D || read.H > 23 || read.m > 59)
    return undefined;
  const hasTime = units.some((unit) => unit.startsWith('H'));
  return hasTime ? at.toISOString() : at.toISOString().slice(0, 10);
}

/** Whether a text is such a pattern. */
export function isDatePattern(pattern: string): boolean {
  return pattern === 'auto' || (pattern.match(TOKEN)?.length ?? 0) > 0;
}
