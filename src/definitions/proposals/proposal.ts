/**
 * A proposed workflow: its settings, its key, the names of its fields, the types of their values, and doubts, which
 * become comments.
 */
import { type Document, isMap, isScalar, parseDocument, stringify, type YAMLMap } from 'yaml';

/** Why the user should check a setting. */
export interface Doubt {
  /** The path of the setting, such as `['source', 'paginate']`; empty for the whole workflow. */
  at: string[];
  text: string;
}

export interface Proposal {
  source: Record<string, unknown>;
  /** The value of each field is a path, or a map with the path in `from`. */
  fields: Record<string, unknown>;
  key: string[];
  expect: Record<string, unknown>;
  doubts: Doubt[];
}

/** Maximum number of records to examine, and maximum number of fields to propose. */
export const LOOKED_AT = 100;
export const MAX_FIELDS = 40;

/** Collects the fields of a proposal. */
export class Fields {
  readonly settings: Record<string, unknown> = {};
  /** The non-empty values of each field in the examined records. */
  readonly columns = new Map<string, readonly unknown[]>();

  get isFull(): boolean {
    return this.columns.size >= MAX_FIELDS;
  }

  /**
   * Adds a field. If its name is taken, a number is appended to the name.
   *
   * @param extra settings that convert the values of the field
   * @returns the name of the field
   */
  add(name: string, values: readonly unknown[], path: string, extra: object = {}): string {
    const free = freeName(name, this.columns);
    this.columns.set(free, values);
    const value = Object.keys(extra).length === 0 ? path : { from: path, ...extra };
    // A plain assignment to the name `__proto__` would set the prototype instead.
    Object.defineProperty(this.settings, free, { value, enumerable: true });
    return free;
  }
}

/** Formats the proposal as a YAML file. Doubts become comments above the settings that they are about. */
export function proposalText({ source, fields, key, expect, doubts }: Proposal): string {
  const settings = {
    source,
    ...(Object.keys(fields).length === 0 ? {} : { fields }),
    ...(key.length === 0 ? {} : { key }),
    expect,
  };
  const document = parseDocument(stringify(settings, { lineWidth: 0 }));
  for (const { at, text } of doubts) comment(document, at, oneLine(text));
  return document.toString({ lineWidth: 0 });
}

function comment(document: Document, at: readonly string[], text: string): void {
  let map = document.contents as YAMLMap | null;
  for (const [depth, name] of at.entries()) {
    const pair = map?.items.find((one) => isScalar(one.key) && one.key.value === name);
    if (pair === undefined || !isScalar(pair.key)) break;
    if (depth === at.length - 1) {
      pair.key.commentBefore = added(pair.key.commentBefore, text);
      return;
    }
    map = isMap(pair.value) ? pair.value : null;
  }
  document.commentBefore = added(document.commentBefore, text);
}

function added(before: string | null | undefined, text: string): string {
  return before ? `${before}\n ${text}` : ` ${text}`;
}

/** Removes line breaks, because a line break in quoted text would end the comment. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\s]+/gu, ' ').slice(0, 300);
}

const GENERAL = /^(?:_?id|name|title|value|type|count|label|code|key|text|url|href|self|status|date)$/i;
const MAX_NAME = 40;

/** Turns a heading or a class into a field name: `Fläche in km²` becomes `flaeche_in_km2`. */
export function wordOf(text: string): string {
  return text
    .replace(/[äöüÄÖÜß]/g, (letter) => GERMAN[letter.toLowerCase()] ?? letter)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, MAX_NAME);
}

const GERMAN: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' };

/**
 * Returns the last name of a path. If this name is too general, the name before it in the path is put in front of it.
 */
export function propertyName(steps: readonly string[]): string {
  const last = steps.at(-1) ?? 'value';
  const before = steps.at(-2);
  return before !== undefined && GENERAL.test(last) ? `${before}_${last}` : last;
}

/** Returns the name, with a number appended if the name is taken. */
function freeName(name: string, taken: ReadonlyMap<string, unknown>): string {
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${name}_${number}`;
  return free;
}

/** Patterns for the names of fields that identify records, best first. */
const KEYS: readonly RegExp[] = [
  /^_?id$/i,
  /^(?:uuid|guid|sku|isbn|ean|gtin|orcid|doi)$/i,
  /(?:_id|Id|ID|_key|Key|[nN]umber|_no|_code|Code|slug|handle)$/,
  /^(?:url|link|href|permalink|email|key|code)$/i,
];

/**
 * Chooses the setting `key` from the fields with a unique value in every record: the field with the best name, or else
 * the first field. If no field is unique, returns an empty list and adds a doubt.
 *
 * @param records the number of records in `columns`
 */
export function keyOf(
  columns: ReadonlyMap<string, readonly unknown[]>,
  records: number,
  doubts: Doubt[],
): string[] {
  const unique = [...columns].filter(
    ([, values]) =>
      values.length === records &&
      values.every((value) => typeof value === 'number' || (typeof value === 'string' && value !== '')) &&
      new Set(values).size === records,
  );
  const best = KEYS.flatMap((form) => unique.filter(([name]) => form.test(name)));
  const [found] = [...best, ...unique];
  if (found !== undefined) return [found[0]];
  doubts.push({
    at: [],
    text: 'No field is unique in all records: set `key` to fields that identify a record.',
  });
  return [];
}

/** Fewer records do not show that a field is always filled. */
const FEW = 5;
/** Maximum number of fields that a proposal expects to be filled: a file with all of them is hard to read. */
const MAX_EXPECTED = 3;

/**
 * Proposes what to expect: that no run loses half of the records, and that the first fields with a value in every
 * record keep having one.
 *
 * @param records the number of records in `columns`
 */
export function expectOf(
  columns: ReadonlyMap<string, readonly unknown[]>,
  { records, key }: { records: number; key: readonly string[] },
): Record<string, unknown> {
  const always = [...columns]
    .filter(([name, values]) => records >= FEW && values.length === records && !key.includes(name))
    // A point in a name would be read as a path.
    .filter(([name]) => !name.includes('.'))
    .slice(0, MAX_EXPECTED);
  const fields = Object.fromEntries(always.map(([name]) => [name, { filled: '90%' }]));
  return { records: { drop: '50%' }, ...(always.length === 0 ? {} : { fields }) };
}

/** The conversion for the values of a field. If the values are ambiguous, `doubt` says why. */
interface ValueKind {
  setting: { number: true | ',' } | { date: string | true };
  doubt?: string;
}

const COMMA_LANGUAGES = /^(?:de|fr|es|it|nl|pt|pl|sv|da|nb|no|fi|cs|sk|hu|ro|ru|uk|tr|el|hr|sl|bg)\b/i;
/**
 * Matches a number, possibly with a currency or a short unit, or in parentheses. A number after a word does not match,
 * because it is part of a name.
 */
const NUMBER =
  /^(?:[A-Z]{3}\s?|[^\d+\p{L}]{0,3})[-\u2212]?(\d[\d.,\s\u00a0\u202f'’]*)(?:\s?(?:\p{L}{1,3}[²³]?|[^\d\s\p{L}]{1,3}))?$/u;
const MONTH = '(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*';
const DATES: readonly [RegExp, string][] = [
  [/^\d\d\.\d\d\.\d{4}$/, 'DD.MM.YYYY'],
  [/^\d{1,2}\.\d{1,2}\.\d{4}$/, 'D.M.YYYY'],
  [/^\d{4}\/\d\d\/\d\d$/, 'YYYY/MM/DD'],
  [/^\d\d-\d\d-\d{4}$/, 'DD-MM-YYYY'],
  [new RegExp(`^\\d{1,2} ${MONTH} \\d{4}$`, 'i'), 'D MMMM YYYY'],
  [new RegExp(`^${MONTH} \\d{1,2}, \\d{4}$`, 'i'), 'MMMM D, YYYY'],
  [/^\w{3}, \d{1,2} \w{3} \d{4} [\d:]+ (?:GMT|[+-]\d{4})$/, 'auto'],
];

/**
 * Finds the conversion for a field of strings.
 *
 * @param texts all non-empty values of the field
 * @param language the language of the page, such as `de-AT`
 */
export function textKind(texts: readonly string[], language: string): ValueKind | undefined {
  if (texts.length === 0) return undefined;
  return dateKind(texts) ?? numberKind(texts, language);
}

function dateKind(texts: readonly string[]): ValueKind | undefined {
  for (const [form, pattern] of DATES) {
    if (texts.every((text) => form.test(text)))
      return { setting: { date: pattern === 'auto' ? true : pattern } };
  }
  if (!texts.every((text) => /^\d\d\/\d\d\/\d{4}$/.test(text))) return undefined;
  const isMonthFirst = texts.some((text) => Number(text.slice(3, 5)) > 12);
  const isDayFirst = texts.some((text) => Number(text.slice(0, 2)) > 12);
  return {
    setting: { date: isMonthFirst ? 'MM/DD/YYYY' : 'DD/MM/YYYY' },
    ...(isMonthFirst || isDayFirst
      ? {}
      : { doubt: `${texts[0]} may start with the day or the month: the values do not show which.` }),
  };
}

function numberKind(texts: readonly string[], language: string): ValueKind | undefined {
  const digits = texts.map((text) => NUMBER.exec(text)?.[1]?.trim());
  // Long numbers and numbers with a leading 0 are identifiers, such as telephone numbers, postal codes and keys.
  const isNumber = digits.every(
    (one) => one !== undefined && !/^0\d/.test(one) && one.replace(/\D/g, '').length <= 15,
  );
  if (
    !isNumber ||
    texts.some((text) => /^\d{1,3}(?: \d{2,4}){2,}$/.test(text) && !/^\d{1,3}(?: \d{3})+$/.test(text))
  )
    return undefined;
  const marks = new Set(digits.map((one) => decimalMark(one as string)));
  marks.delete(undefined);
  if (marks.size > 1) return undefined;
  const [mark] = marks;
  const byLanguage = COMMA_LANGUAGES.test(language) ? ',' : '.';
  if (mark !== undefined) return numberBy(mark);
  // If no value shows which separator is the decimal mark, all separators are taken to group thousands.
  const separators = new Set(digits.flatMap((one) => (one as string).match(/[.,]/g) ?? []));
  if (separators.size === 0) return numberBy(byLanguage);
  const grouped = separators.has('.') ? ',' : '.';
  return {
    ...numberBy(grouped),
    ...(grouped === byLanguage
      ? {}
      : { doubt: `${texts.find((text) => /[.,]/.test(text))} is read with a thousands separator.` }),
  };
}

function numberBy(mark: '.' | ','): ValueKind {
  return { setting: { number: mark === ',' ? ',' : true } };
}

/** Returns the decimal mark; undefined if there is no separator, or if the separator could also group thousands. */
function decimalMark(digits: string): '.' | ',' | undefined {
  const last = /[.,](?=\d*$)/.exec(digits);
  if (last === null) return undefined;
  const mark = last[0] as '.' | ',';
  const hasOther = digits.includes(mark === '.' ? ',' : '.');
  if (hasOther) return mark;
  const isGrouped = /^\d{1,3}(?:[.,]\d{3})+$/.test(digits);
  return isGrouped ? undefined : mark;
}

/**
 * Whether the numbers of a field are times. They are if the name of the field suggests it, and all numbers are epoch
 * seconds or milliseconds from 1990 to 2099.
 */
export function isMoment(name: string, values: readonly number[]): boolean {
  return (
    /(?:date|time|_at|At|_on|On|ts|stamp|updated|created|modified|expires|since|last)/.test(name) &&
    values.length > 0 &&
    values.every((value) => {
      const seconds = value > 1e11 ? value / 1_000 : value;
      return Number.isInteger(value) && seconds > 631_152_000 && seconds < 4_102_444_800 && value >= 1e9;
    })
  );
}
