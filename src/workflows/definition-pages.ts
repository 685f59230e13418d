/** Checks `source.paginate` and `source.follow` of an `http` source. */
import { type Follow, PAGINATIONS, PARSES, type Paginate, type Parse } from '../model/http-source.ts';
import { type Checker, describe, isMissing, orDefault } from './check.ts';
import { checkFields, checkPath } from './definition-fields.ts';

const MAX_PAGES = 1_000_000;
const MAX_CONCURRENCY = 16;
const PAGINATE = ['source', 'paginate'];
const FOLLOW = ['source', 'follow'];

const SETTINGS: Readonly<Record<(typeof PAGINATIONS)[number], readonly string[]>> = {
  cursor: ['from', 'param'],
  page: ['param', 'start', 'size'],
  offset: ['param', 'limit', 'limitParam', 'start'],
  link_header: [],
  next_link: ['from'],
  until_empty: ['start'],
};

export function checkPaginate(checker: Checker, value: unknown, parse: Parse | null): Paginate | null {
  if (isMissing(value)) return null;
  if (typeof value !== 'object' || Array.isArray(value)) {
    checker.wrong(PAGINATE, `must be a map such as { type: page, param: page }, found ${describe(value)}`);
    return null;
  }
  const { type: written } = value as { type?: unknown };
  const type = checker.oneOf(written, [...PAGINATE, 'type'], PAGINATIONS);
  if (type === undefined) return null;
  const settings = checker.map(value, PAGINATE, { known: ['type', 'maxPages', ...SETTINGS[type]] });
  const maxPages = orDefault<number | null>(settings.maxPages, null, () =>
    checker.number(settings.maxPages, [...PAGINATE, 'maxPages'], { min: 1, max: MAX_PAGES, whole: true }),
  );
  const whole = (name: string, fallback: number, min = 0) =>
    orDefault(settings[name], fallback, () =>
      checker.number(settings[name], [...PAGINATE, name], { min, max: 1_000_000_000, whole: true }),
    );
  const text = (name: string, fallback?: string): string => {
    if (isMissing(settings[name]) && fallback !== undefined) return fallback;
    return checker.text(settings[name], [...PAGINATE, name], 200) ?? '';
  };
  if (type === 'cursor' || type === 'next_link') {
    if (parse === 'csv' || parse === 'ndjson') {
      checker.wrong(
        PAGINATE,
        `cannot be ${type} where answers are ${parse}: nothing stands around their records`,
      );
    }
    const from = checkPath(checker, settings.from, [...PAGINATE, 'from'], parse) ?? '';
    return type === 'cursor' ? { type, from, param: text('param'), maxPages } : { type, from, maxPages };
  }
  switch (type) {
    case 'page': {
      const size = isMissing(settings.size) ? null : whole('size', 1, 1);
      return { type, param: text('param', 'page'), start: whole('start', 1), size, maxPages };
    }
    case 'offset': {
      if (isMissing(settings.limit))
        checker.wrong([...PAGINATE, 'limit'], 'is missing: how many records a page has, such as 100');
      const limitParam = settings.limitParam === false ? null : text('limitParam', 'limit');
      return {
        type,
        param: text('param', 'offset'),
        limit: whole('limit', 1, 1),
        limitParam,
        start: whole('start', 0),
        maxPages,
      };
    }
    case 'until_empty':
      return { type, start: whole('start', 1), maxPages };
    case 'link_header':
      return { type, maxPages };
  }
}

/** @param parse the format of the pages that link to the detail pages */
export function checkFollow(checker: Checker, value: unknown, parse: Parse | null): Follow | null {
  if (isMissing(value)) return null;
  if (typeof value !== 'object' || Array.isArray(value)) {
    checker.wrong(
      FOLLOW,
      `must be a map such as { url: "a@href", fields: { phone: ".phone" } }, found ${describe(value)}`,
    );
    return null;
  }
  const settings = checker.map(value, FOLLOW, { known: ['url', 'parse', 'fields', 'concurrency'] });
  const own = isMissing(settings.parse)
    ? parse === 'html' || parse === 'json'
      ? parse
      : null
    : (checker.oneOf(settings.parse, [...FOLLOW, 'parse'], PARSES) ?? null);
  if (own === 'csv' || own === 'ndjson') {
    checker.wrong([...FOLLOW, 'parse'], 'must be json, html or xml: a detail page describes one record');
  }
  if (isMissing(settings.fields))
    checker.wrong(FOLLOW, 'has no `fields`: say what the detail page adds to a record');
  return {
    url: checkPath(checker, settings.url, [...FOLLOW, 'url'], parse) ?? '',
    parse: own,
    fields: checkFields(checker, settings.fields, [...FOLLOW, 'fields'], own),
    concurrency: orDefault(settings.concurrency, 2, () =>
      checker.number(settings.concurrency, [...FOLLOW, 'concurrency'], {
        min: 1,
        max: MAX_CONCURRENCY,
        whole: true,
      }),
    ),
  };
}
