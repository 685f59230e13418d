/** Checks `source: { type: http, … }` and the settings outside of it that only this kind has: `fields` and their guards. */
import {
  type Follow,
  type HttpSource,
  PAGINATIONS,
  PARSES,
  type Paginate,
  type Parse,
  type Remember,
  TAKES,
} from '../model/http-source.ts';
import { known as knownCharset } from '../sources/http/body.ts';
import { statesIn } from '../sources/http/request.ts';
import { parseDuration } from '../std/amounts.ts';
import { type Checker, describe, isMissing, orDefault, type Path } from './checker.ts';
import { checkFields, checkFlag, checkPath } from './http-fields.ts';
import {
  checkAuth,
  checkBody,
  checkHeaders,
  checkMethod,
  checkProxy,
  checkTexts,
  checkUrls,
} from './http-request.ts';

const SETTINGS = [
  'type',
  'url',
  'method',
  'query',
  'headers',
  'body',
  'form',
  'auth',
  'cookies',
  'proxy',
  'parse',
  'charset',
  'delimiter',
  'records',
  'paginate',
  'follow',
  'state',
  'robots',
  'perHost',
  'delay',
  'timeout',
];
const ROBOTS = ['respect', 'ignore'] as const;
const MAX_DELAY_MS = 60_000;
const MAX_ANSWER_MS = 24 * 60 * 60_000;
/** Of the names in a message. */
const MAX_SHOWN = 40;
const SOURCE: Path = ['source'];

/** @param root the whole definition, for `fields`, `guards` and `mode` */
export function checkHttpSource(checker: Checker, root: Record<string, unknown>): HttpSource {
  const settings = checker.map(root.source, SOURCE, { known: SETTINGS });
  const parse = orDefault<Parse | null>(settings.parse, null, () =>
    checker.oneOf(settings.parse, ['source', 'parse'], PARSES),
  );
  const body = checkBody(checker, settings);
  const fields = checkFields(checker, root.fields, ['fields'], parse);
  const follow = checkFollow(checker, settings.follow, parse);
  const source: HttpSource = {
    type: 'http',
    urls: checkUrls(checker, settings.url),
    method: checkMethod(checker, settings.method, body),
    query: checkTexts(checker, settings.query, ['source', 'query']),
    headers: checkHeaders(checker, settings.headers),
    body,
    auth: checkAuth(checker, settings.auth),
    cookies: checkFlag(checker, settings.cookies, ['source', 'cookies']) ?? true,
    proxy: checkProxy(checker, settings.proxy),
    parse,
    charset: checkCharset(checker, settings.charset),
    delimiter: checkDelimiter(checker, settings.delimiter, parse),
    records: checkRecords(checker, settings.records, parse),
    fields,
    filled: checkFilled(checker, root.guards, { ...fields, ...follow?.fields }),
    paginate: checkPaginate(checker, settings.paginate, parse),
    follow,
    remember: checkState(checker, settings.state, parse),
    robots: orDefault<HttpSource['robots']>(settings.robots, null, () =>
      checker.oneOf(settings.robots, ['source', 'robots'], ROBOTS),
    ),
    perHost: orDefault(settings.perHost, 2, () =>
      checker.number(settings.perHost, ['source', 'perHost'], { min: 1, max: 64, whole: true }),
    ),
    delayMs: checkDelay(checker, settings.delay),
    answerMs: checkTimeout(checker, settings.timeout),
  };
  if ((parse === 'html' || parse === 'xml') && Object.keys(fields).length === 0 && isMissing(root.fields)) {
    checker.wrong(
      [],
      `\`fields\` is missing: an answer in ${parse} has no records of its own, such as fields: { id: "a@href", name: "a" }`,
    );
  }
  checkPlaceholders(checker, root, source);
  return source;
}

function checkCharset(checker: Checker, value: unknown): string | null {
  if (isMissing(value)) return null;
  const charset = checker.text(value, ['source', 'charset'], 100);
  if (charset === undefined || knownCharset(charset) !== undefined) return charset ?? null;
  checker.wrong(
    ['source', 'charset'],
    `is not a character set that is known, such as utf-8, windows-1252 or shift_jis, found ${describe(value)}`,
  );
  return null;
}

function checkDelimiter(checker: Checker, value: unknown, parse: Parse | null): string | null {
  const path = ['source', 'delimiter'];
  if (isMissing(value)) return null;
  if (parse !== null && parse !== 'csv') checker.wrong(path, 'has a meaning only for csv. Remove it');
  if (typeof value === 'string' && /^[^"\r\n\w]$/.test(value)) return value;
  checker.wrong(path, `must be one character such as ";" or "\\t", found ${describe(value)}`);
  return null;
}

function checkRecords(checker: Checker, value: unknown, parse: Parse | null): string | null {
  const path = ['source', 'records'];
  if (isMissing(value)) return null;
  if (parse === 'csv' || parse === 'ndjson') {
    checker.wrong(
      path,
      `has no meaning for ${parse}: each ${parse === 'csv' ? 'row' : 'line'} is a record. Remove it`,
    );
    return null;
  }
  return checkPath(checker, value, path, parse) ?? null;
}

/** `guards: { required: [email], minFilledPercent: 90 }`. */
function checkFilled(checker: Checker, guards: unknown, fields: HttpSource['fields']): HttpSource['filled'] {
  if (typeof guards !== 'object' || guards === null) return null;
  const { required, minFilledPercent } = guards as Record<string, unknown>;
  if (isMissing(required) && isMissing(minFilledPercent)) return null;
  const names = orDefault<string[] | null>(required, null, () =>
    checker.texts(required, ['guards', 'required'], { min: 1, max: 1_000, example: '[email]' }),
  );
  if (Object.keys(fields).length === 0) {
    checker.wrong(
      ['guards', isMissing(required) ? 'minFilledPercent' : 'required'],
      'needs `fields`: what they do not name is not counted',
    );
  } else {
    const all = Object.keys(fields);
    const there = all.length > MAX_SHOWN ? `${all.slice(0, MAX_SHOWN).join(', ')} …` : all.join(', ');
    for (const [at, name] of (names ?? []).entries()) {
      if (Object.hasOwn(fields, name)) continue;
      checker.wrong(
        ['guards', 'required', at],
        `is none of \`fields\`, so that it would never be filled: ${there}`,
      );
    }
  }
  const minPercent = orDefault(minFilledPercent, 100, () =>
    checker.number(minFilledPercent, ['guards', 'minFilledPercent'], { min: 0, max: 100, whole: false }),
  );
  return { fields: names, minPercent };
}

function checkState(checker: Checker, value: unknown, parse: Parse | null): HttpSource['remember'] {
  const path = ['source', 'state'];
  const remember: Record<string, Remember> = {};
  if (isMissing(value)) return remember;
  if (typeof value !== 'object' || Array.isArray(value)) {
    checker.wrong(
      path,
      `must be a map such as { since: { from: $.updated_at, take: max } }, found ${describe(value)}`,
    );
    return remember;
  }
  for (const [name, one] of Object.entries(value)) {
    const at = [...path, name];
    if (!/^\w{1,100}$/.test(name)) checker.wrong(at, 'must be a name of letters, digits and _');
    if (typeof one !== 'object' || one === null || Array.isArray(one)) {
      checker.wrong(at, `must be a map such as { from: $.updated_at, take: max }, found ${describe(one)}`);
      // Defined all the same, so that the requests that refer to it are not mistakes too.
      remember[name] = { take: 'start', initial: null };
      continue;
    }
    const settings = checker.map(one, at, { known: ['from', 'take', 'initial'] });
    const take = isMissing(settings.take) ? 'max' : checker.oneOf(settings.take, [...at, 'take'], TAKES);
    const initial = isMissing(settings.initial)
      ? null
      : (checkTexts(checker, { initial: settings.initial }, at).initial ?? null);
    if (take === 'start') {
      if (!isMissing(settings.from))
        checker.wrong(
          [...at, 'from'],
          'has no meaning with `take: start`, the time at which the run begins. Remove it',
        );
      remember[name] = { take, initial };
      continue;
    }
    const from = checkPath(checker, settings.from, [...at, 'from'], parse);
    if (take !== undefined && from !== undefined) remember[name] = { take, from, initial };
  }
  return remember;
}

function checkDelay(checker: Checker, value: unknown): number {
  if (isMissing(value)) return 0;
  const ms = parseDuration(value);
  if (ms !== undefined && ms <= MAX_DELAY_MS) return ms;
  checker.wrong(
    ['source', 'delay'],
    `must be a duration such as 500ms or 2s, at most 60s, found ${describe(value)}`,
  );
  return 0;
}

function checkTimeout(checker: Checker, value: unknown): number | null {
  if (isMissing(value)) return null;
  const ms = parseDuration(value);
  if (ms !== undefined && ms > 0 && ms <= MAX_ANSWER_MS) return ms;
  checker.wrong(
    ['source', 'timeout'],
    `must be a duration such as 5m, for one answer to its last byte, at most 24h, found ${describe(value)}`,
  );
  return null;
}

/** Checks that the placeholders of requests have values, and fit the mode and the pagination. */
function checkPlaceholders(checker: Checker, root: Record<string, unknown>, source: HttpSource): void {
  const { urls, query, headers, body, paginate, remember } = source;
  const sent = JSON.stringify([urls, query, headers, body]);
  for (const name of new Set(statesIn(sent))) {
    if (Object.hasOwn(remember, name)) continue;
    checker.wrong(SOURCE, `uses $\{state.${name}}, and \`source.state\` has no ${name}`);
  }
  if (statesIn(sent).length > 0 && (isMissing(root.mode) || root.mode === 'replace')) {
    checker.wrong(
      ['mode'],
      'must be upsert or append where requests hold a state: the source then sends only what is new, and replace would remove the rest',
    );
  }
  const paged = sent.includes(`$\{page}`);
  if (paginate?.type === 'until_empty' && !paged) {
    checker.wrong(
      ['source', 'paginate'],
      `until_empty counts $\{page}, which neither the url nor query, headers or body hold`,
    );
  }
  if (paged && paginate?.type !== 'until_empty' && paginate?.type !== 'page') {
    checker.wrong(SOURCE, `uses $\{page}, which only \`paginate: { type: until_empty }\` counts`);
  }
}

const MAX_PAGES = 1_000_000;
const MAX_CONCURRENCY = 16;
const PAGINATE = ['source', 'paginate'];
const FOLLOW = ['source', 'follow'];

const PAGINATE_SETTINGS: Readonly<Record<(typeof PAGINATIONS)[number], readonly string[]>> = {
  cursor: ['from', 'param'],
  page: ['param', 'start', 'size'],
  offset: ['param', 'limit', 'limitParam', 'start'],
  link_header: [],
  next_link: ['from'],
  until_empty: ['start'],
};

function checkPaginate(checker: Checker, value: unknown, parse: Parse | null): Paginate | null {
  if (isMissing(value)) return null;
  if (typeof value !== 'object' || Array.isArray(value)) {
    checker.wrong(PAGINATE, `must be a map such as { type: page, param: page }, found ${describe(value)}`);
    return null;
  }
  const { type: written } = value as { type?: unknown };
  const type = checker.oneOf(written, [...PAGINATE, 'type'], PAGINATIONS);
  if (type === undefined) return null;
  const settings = checker.map(value, PAGINATE, { known: ['type', 'maxPages', ...PAGINATE_SETTINGS[type]] });
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
function checkFollow(checker: Checker, value: unknown, parse: Parse | null): Follow | null {
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
