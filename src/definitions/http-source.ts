/**
 * Checks `source: { type: http, … }`, and the settings outside `source` that only http sources have: `fields`.
 */
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
import { checkFields, checkPath } from './http-fields.ts';
import {
  asSent,
  checkAuth,
  checkBody,
  checkHeaders,
  checkMethod,
  checkPlaceholders,
  checkProxy,
  checkTexts,
  checkUrls,
} from './http-request.ts';
import { asMap, describe, durationWithin, type Section } from './section.ts';

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

/** @param root the whole definition, because `fields` and `mode` are outside `source` */
export function checkHttpSource(root: Section): HttpSource {
  const settings = root.section('source', SETTINGS);
  const parse = settings.oneOf('parse', PARSES, null);
  const body = checkBody(settings);
  const fields = checkFields(root, parse);
  const follow = checkFollow(settings, parse);
  const source: HttpSource = {
    type: 'http',
    urls: checkUrls(settings),
    method: checkMethod(settings, body),
    query: checkTexts(settings, 'query'),
    headers: checkHeaders(settings),
    body,
    auth: checkAuth(settings),
    cookies: settings.flag('cookies', true),
    proxy: checkProxy(settings),
    parse,
    charset: checkCharset(settings),
    delimiter: checkDelimiter(settings, parse),
    records: checkRecords(settings, parse),
    fields,
    paginate: checkPaginate(settings, parse),
    follow,
    remember: checkState(settings, parse),
    robots: settings.oneOf('robots', ROBOTS, null),
    perHost: settings.number('perHost', { min: 1, max: 64 }, 2),
    delayMs: settings.read(
      'delay',
      'must be a duration such as 500ms or 2s, at most 60s',
      (value) => durationWithin(value, '0ms', '60s'),
      0,
    ),
    answerMs: settings.read(
      'timeout',
      'must be a duration such as 5m (for one response up to its last byte), at most 24h',
      (value) => durationWithin(value, '1ms', '24h'),
      null,
    ),
  };
  if ((parse === 'html' || parse === 'xml') && !root.has('fields')) {
    root.checker.wrong(
      [],
      `\`fields\` is missing: ${parse} has no records of its own. Add, for example, fields: { id: "a@href", name: "a" }`,
    );
  }
  checkStatesAndPages(root, source);
  return source;
}

function checkCharset(settings: Section): string | null {
  const charset = settings.text('charset', 100, null);
  if (charset === null || knownCharset(charset) !== undefined) return charset;
  settings.wrong(
    'charset',
    `must be a known character set such as utf-8, windows-1252 or shift_jis, found ${describe(charset)}`,
  );
  return null;
}

function checkDelimiter(settings: Section, parse: Parse | null): string | null {
  if (settings.has('delimiter') && parse !== null && parse !== 'csv')
    settings.wrong('delimiter', 'applies only to csv. Remove it');
  return settings.read(
    'delimiter',
    'must be one character such as ";" or "\\t"',
    (value) => (typeof value === 'string' && /^[^"\r\n\w]$/.test(value) ? value : undefined),
    null,
  );
}

function checkRecords(settings: Section, parse: Parse | null): string | null {
  if (!settings.has('records')) return null;
  if (parse === 'csv' || parse === 'ndjson') {
    const what = parse === 'csv' ? 'row' : 'line';
    settings.wrong('records', `does not apply to ${parse}: each ${what} is a record. Remove it`);
    return null;
  }
  return checkPath(settings, 'records', parse) ?? null;
}

function checkState(settings: Section, parse: Parse | null): HttpSource['remember'] {
  const remember: Record<string, Remember> = {};
  const states = settings.free('state', 'must be a map such as { since: { from: $.updated_at, take: max } }');
  for (const name of Object.keys(states.values)) {
    if (!/^\w{1,100}$/.test(name)) states.wrong(name, 'must be a name of letters, digits and _');
    if (states.read(name, 'must be a map such as { from: $.updated_at, take: max }', asMap) === undefined) {
      // The state is defined despite the mistake, so that requests that use it are not reported as well.
      remember[name] = { take: 'start', initial: null };
      continue;
    }
    const state = states.section(name, ['from', 'take', 'initial']);
    const take = state.has('take') ? state.oneOf('take', TAKES) : 'max';
    const initial = state.read('initial', 'must be a string', asSent, null);
    if (initial !== null) checkPlaceholders(state.checker, initial, [...state.path, 'initial']);
    if (take === 'start') {
      if (state.has('from'))
        state.wrong('from', 'does not apply to `take: start`, which is the start time of the run. Remove it');
      remember[name] = { take, initial };
      continue;
    }
    const from = checkPath(state, 'from', parse);
    if (take !== undefined && from !== undefined) remember[name] = { take, from, initial };
  }
  return remember;
}

const PAGINATE_SETTINGS: Readonly<Record<(typeof PAGINATIONS)[number], readonly string[]>> = {
  cursor: ['from', 'param'],
  page: ['param', 'start', 'size'],
  offset: ['param', 'limit', 'limitParam', 'start'],
  link_header: [],
  next_link: ['from'],
  until_empty: ['start'],
};

function checkPaginate(settings: Section, parse: Parse | null): Paginate | null {
  const example = 'must be a map such as { type: page, param: page }';
  if (settings.read('paginate', example, asMap, null) === null) return null;
  const type = settings.section('paginate', null).oneOf('type', PAGINATIONS);
  if (type === undefined) return null;
  const paginate = settings.section('paginate', ['type', 'maxPages', ...PAGINATE_SETTINGS[type]]);
  const maxPages = paginate.number('maxPages', { min: 1, max: 1_000_000 }, null);
  const whole = <D>(name: string, otherwise: D, min = 0) =>
    paginate.number(name, { min, max: 1_000_000_000 }, otherwise);
  if ((type === 'cursor' || type === 'next_link') && (parse === 'csv' || parse === 'ndjson')) {
    settings.wrong('paginate', `cannot be ${type} for ${parse}, where responses contain only records`);
  }
  switch (type) {
    case 'cursor': {
      const from = checkPath(paginate, 'from', parse) ?? '';
      return { type, from, param: paginate.text('param', 200) ?? '', maxPages };
    }
    case 'next_link':
      return { type, from: checkPath(paginate, 'from', parse) ?? '', maxPages };
    case 'page': {
      const param = paginate.text('param', 200, 'page');
      return { type, param, start: whole('start', 1), size: whole('size', null, 1), maxPages };
    }
    case 'offset': {
      if (!paginate.has('limit'))
        paginate.wrong('limit', 'is missing. Set the number of records per page, such as 100');
      const limitParam =
        paginate.values.limitParam === false ? null : paginate.text('limitParam', 200, 'limit');
      return {
        type,
        param: paginate.text('param', 200, 'offset'),
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
function checkFollow(settings: Section, parse: Parse | null): Follow | null {
  const example = 'must be a map such as { url: "a@href", fields: { phone: ".phone" } }';
  if (settings.read('follow', example, asMap, null) === null) return null;
  const follow = settings.section('follow', ['url', 'parse', 'fields', 'concurrency']);
  const own = follow.has('parse')
    ? follow.oneOf('parse', PARSES, null)
    : parse === 'html' || parse === 'json'
      ? parse
      : null;
  if (own === 'csv' || own === 'ndjson')
    follow.wrong('parse', 'must be json, html or xml: a detail page describes one record');
  if (!follow.has('fields'))
    settings.wrong('follow', 'has no `fields`. Add the fields that the detail page adds to a record');
  return {
    url: checkPath(follow, 'url', parse) ?? '',
    parse: own,
    fields: checkFields(follow, own),
    concurrency: follow.number('concurrency', { min: 1, max: 16 }, 2),
  };
}

/** Checks that `${state.NAME}` and `${page}` in requests have values, and that they fit the mode and the pagination. */
function checkStatesAndPages(root: Section, source: HttpSource): void {
  const { urls, query, headers, body, paginate, remember } = source;
  const sent = JSON.stringify([urls, query, headers, body]);
  const states = statesIn(sent);
  for (const name of new Set(states)) {
    if (!Object.hasOwn(remember, name))
      root.wrong('source', `uses $\{state.${name}}, but \`source.state\` has no ${name}`);
  }
  if (states.length > 0 && (!root.has('mode') || root.values.mode === 'replace')) {
    root.wrong(
      'mode',
      'must be upsert or append if requests use a state: the source then returns only new records, and replace would remove all others',
    );
  }
  const paged = sent.includes(`$\{page}`);
  if (paginate?.type === 'until_empty' && !paged) {
    root.checker.wrong(
      ['source', 'paginate'],
      `with type until_empty needs $\{page} in the url, query, headers or body`,
    );
  }
  if (paged && paginate?.type !== 'until_empty' && paginate?.type !== 'page')
    root.wrong('source', `uses $\{page}, which has a value only if \`paginate.type\` is until_empty or page`);
}
