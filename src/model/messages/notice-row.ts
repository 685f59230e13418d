/** What people read about one record that was added, changed or removed. */
import type { Difference } from '../same-json.ts';
import { oneLine, valueText, valueTexts, visible } from './plain-text.ts';

/** One record, or one event of a digest. All texts are plain, on one line, and short. */
export interface NoticeRow {
  change: 'added' | 'changed' | 'removed' | 'event';
  title: string;
  /** An http(s) URL. */
  url: string | null;
  /** `before` is null if the field did not exist, and so is `after`. Empty if the record is as before. */
  fields: { key: string; before: string | null; after: string | null }[];
  moreFields: number;
}

/** Maximum number of fields that a row lists. */
const MAX_ROW_FIELDS = 8;
const MAX_TITLE = 120;
const MAX_KEY = 60;
const MAX_VALUE = 200;
const MAX_LINK = 1_000;

/** The fields that may hold the title of a record, and its address. The first that fits is used. */
const TITLES = ['name', 'title', 'label', 'headline', 'subject'] as const;
const LINKS = ['url', 'link', 'href'] as const;

/** A difference, with what is known of the record: whole states, or the title and address that were taken from them. */
export interface RowSource extends Difference {
  record?: unknown;
  previous?: unknown;
  title?: string | null;
  url?: string | null;
  /** Number of fields that differ but are not in `fields`. */
  moreFields?: number;
}

/** @param page the address to use if the record has none of its own */
export function noticeRow(source: RowSource, page: string | null): NoticeRow {
  const { type, id, fields } = source;
  const states = statesOf(source);
  const title = oneLine(source.title ?? titleOf(states, id), MAX_TITLE) || oneLine(id, MAX_TITLE) || 'record';
  const url = source.url === undefined ? linkOf(states) : httpUrl(source.url);
  const told = type === 'changed' ? fields : fields.filter((field) => !isInTitle(field, { id, title, url }));
  const shown = told.slice(0, MAX_ROW_FIELDS).map(noticeField);
  const moreFields = told.length - shown.length + (source.moreFields ?? 0);
  return { change: type, title, url: url ?? page, fields: shown, moreFields };
}

/**
 * The title of a record: the first short text among the fields that usually hold one; otherwise the id.
 *
 * @param states the newest state first
 */
export function titleOf(states: readonly unknown[], id: string): string {
  for (const state of states) {
    for (const name of TITLES) {
      const value = memberOf(state, name);
      if (typeof value !== 'string' || value.length > MAX_TITLE) continue;
      const title = visible(value);
      if (title !== '') return title;
    }
  }
  return id;
}

/** The address in a record; null if it has none that starts with http:// or https://. */
export function linkOf(states: readonly unknown[]): string | null {
  for (const state of states) {
    for (const name of LINKS) {
      const url = httpUrl(memberOf(state, name));
      if (url !== null) return url;
    }
  }
  return null;
}

/** A difference without the parts of the record that messages for people do not show. */
export function shortened(source: RowSource): RowSource {
  const { title, url, fields, moreFields } = noticeRow(source, null);
  return {
    type: source.type,
    id: source.id,
    fields: fields.map(({ key, before, after }) => ({
      key,
      ...(after === null ? {} : { value: after }),
      ...(before === null ? {} : { previousValue: before }),
    })),
    title,
    url,
    moreFields,
  };
}

/** An absolute http(s) URL without a login, which could imitate the name of another host; null for other values. */
function httpUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_LINK || !/^https?:\/\//i.test(value)) return null;
  const url = URL.parse(value);
  if (url === null || url.username !== '' || url.password !== '') return null;
  // Parentheses end a link in Markdown.
  const { href } = url;
  const safe = href.replaceAll('(', '%28').replaceAll(')', '%29').replaceAll("'", '%27');
  return safe.length > MAX_LINK ? null : safe;
}

/** The known states of a record, the newest first. Without whole states, what the differing fields show. */
function statesOf({ fields, record, previous }: RowSource): unknown[] {
  if (record != null || previous != null) return [record, previous];
  const side = (name: 'value' | 'previousValue') =>
    Object.fromEntries(fields.map((field) => [field.key, field[name]]));
  return [side('value'), side('previousValue')];
}

function isInTitle(
  field: Difference['fields'][number],
  { id, title, url }: { id: string; title: string; url: string | null },
): boolean {
  const value = field.value ?? field.previousValue;
  if (field.key === 'id') return value === id;
  if (isOneOf(LINKS, field.key)) return url !== null && httpUrl(value) === url;
  return isOneOf(TITLES, field.key) && typeof value === 'string' && visible(value) === title;
}

function isOneOf(names: readonly string[], name: string): boolean {
  return names.includes(name);
}

function noticeField(field: Difference['fields'][number]): NoticeRow['fields'][number] {
  const key = oneLine(field.key, MAX_KEY) || '""';
  const { value, previousValue } = field;
  const [had, has] = [Object.hasOwn(field, 'previousValue'), Object.hasOwn(field, 'value')];
  if (had && has) return { key, ...valueTexts(previousValue, value, MAX_VALUE) };
  return {
    key,
    before: had ? valueText(previousValue, MAX_VALUE) : null,
    after: has ? valueText(value, MAX_VALUE) : null,
  };
}

function memberOf(state: unknown, name: string): unknown {
  if (typeof state !== 'object' || state === null || !Object.hasOwn(state, name)) return undefined;
  return (state as Record<string, unknown>)[name];
}
