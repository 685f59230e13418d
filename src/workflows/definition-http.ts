/** Reads `source: { type: http, … }`, and what beside it concerns only this kind: `fields` and the guards on them. */
import {
  HTTP_METHODS,
  type HttpAuth,
  type HttpBody,
  type HttpMethod,
  type HttpSource,
  PARSES,
  type Parse,
  type Remember,
  TAKES,
} from '../model/http-source.ts';
import { type Checker, describe, isMissing, type Path } from './check.ts';
import { checkFields, checkFlag, checkPath } from './definition-fields.ts';
import { checkFollow, checkPaginate } from './definition-pages.ts';
import { parseDuration } from './duration.ts';
import { secretReferences } from './secret-names.ts';
import { known as knownCharset } from './sources/http/charset.ts';
import { statesIn } from './sources/http/fill-in.ts';

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
];
const ROBOTS = ['respect', 'ignore'] as const;
const MAX_URLS = 10_000;
const MAX_TEXT = 100_000;
const MAX_DELAY_MS = 60_000;
const SOURCE: Path = ['source'];

/** @param root the whole definition: `fields`, `guards` and `mode` are looked at too */
export function checkHttpSource(checker: Checker, root: Record<string, unknown>): HttpSource {
  const settings = checker.map(root.source, SOURCE, { known: SETTINGS });
  const parse = isMissing(settings.parse)
    ? null
    : (checker.oneOf(settings.parse, ['source', 'parse'], PARSES) ?? null);
  const body = checkBody(checker, settings);
  const fields = checkFields(checker, root.fields, ['fields'], parse);
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
    filled: checkFilled(checker, root.guards, fields),
    paginate: checkPaginate(checker, settings.paginate, parse),
    follow: checkFollow(checker, settings.follow, parse),
    remember: checkState(checker, settings.state, parse),
    robots: isMissing(settings.robots)
      ? null
      : (checker.oneOf(settings.robots, ['source', 'robots'], ROBOTS) ?? null),
    perHost: isMissing(settings.perHost)
      ? 2
      : (checker.number(settings.perHost, ['source', 'perHost'], { min: 1, max: 64, whole: true }) ?? 2),
    delayMs: checkDelay(checker, settings.delay),
  };
  if ((parse === 'html' || parse === 'xml') && Object.keys(fields).length === 0 && isMissing(root.fields)) {
    checker.wrong(
      [],
      `\`fields\` is missing: an answer in ${parse} has no records of its own, such as fields: { id: "a@href", name: "a" }`,
    );
  }
  checkPlaces(checker, root, source);
  return source;
}

function checkUrls(checker: Checker, value: unknown): string[] {
  const path = ['source', 'url'];
  const urls =
    typeof value === 'string'
      ? [value]
      : checker.texts(value, path, { min: 1, max: MAX_URLS, example: '["https://example.com/people"]' });
  for (const [position, url] of (urls ?? []).entries()) {
    checkUrl(checker, url, typeof value === 'string' ? path : [...path, position]);
  }
  return urls ?? [];
}

function checkUrl(checker: Checker, url: string, path: Path): void {
  const parsed = URL.parse(url.replace(/\$\{[^}]*\}/g, '0'));
  if (parsed === null || !/^https?:\/\//i.test(url)) {
    checker.wrong(path, `must be an address that begins with http:// or https://, found ${describe(url)}`);
  } else if (parsed.username !== '' || parsed.password !== '') {
    checker.wrong(path, 'must not hold a user: write `auth: { type: basic, username: …, password: … }`');
  }
  checkText(checker, url, path);
}

function checkMethod(checker: Checker, value: unknown, body: HttpBody | null): HttpMethod {
  const path = ['source', 'method'];
  if (isMissing(value)) return body === null ? 'GET' : 'POST';
  const method = checker.oneOf(value, path, HTTP_METHODS) ?? 'GET';
  if (method === 'GET' && body !== null) checker.wrong(path, 'must be POST where a body is sent');
  return method;
}

/** A text that is sent: its secrets must be well written. */
function checkText(checker: Checker, text: string, path: Path): void {
  const rest = text.replace(secretReferences(), '').replace(/\$\{(?:state\.\w+|page)\}/g, '');
  const place = /\$\{[^}]*\}?/.exec(rest)?.[0];
  if (place === undefined) return;
  checker.wrong(
    path,
    `holds ${place}, which means nothing here. There are $` +
      '{secret.NAME}, $' +
      '{state.NAME} and $' +
      '{page}',
  );
}

/** A map of texts; numbers and booleans are texts as well where they are sent. */
function checkTexts(checker: Checker, value: unknown, path: Path): Record<string, string> {
  const texts: Record<string, string> = {};
  if (isMissing(value)) return texts;
  if (typeof value !== 'object' || Array.isArray(value)) {
    checker.wrong(path, `must be a map of names to texts, found ${describe(value)}`);
    return texts;
  }
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== 'string' && typeof text !== 'number' && typeof text !== 'boolean') {
      checker.wrong([...path, name], `must be a text, found ${describe(text)}`);
      continue;
    }
    checkText(checker, String(text), [...path, name]);
    texts[name] = String(text);
  }
  return texts;
}

const OWN_HEADERS = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'expect',
  'accept-encoding',
];

function checkHeaders(checker: Checker, value: unknown): Record<string, string> {
  const headers = checkTexts(checker, value, ['source', 'headers']);
  for (const [name, text] of Object.entries(headers)) {
    const path = ['source', 'headers', name];
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) checker.wrong(path, 'is not a name that a header can have');
    else if (OWN_HEADERS.includes(name.toLowerCase()))
      checker.wrong(path, 'is set by Flowhook itself. Remove it');
    else if (/[\r\n\0]/.test(text)) checker.wrong(path, 'must not hold a line break');
  }
  return headers;
}

function checkBody(checker: Checker, { body, form }: Record<string, unknown>): HttpBody | null {
  if (!isMissing(body) && !isMissing(form))
    checker.wrong(['source', 'form'], 'says what `body` says too. Remove one of them');
  if (!isMissing(form)) return { form: checkTexts(checker, form, ['source', 'form']) };
  if (isMissing(body)) return null;
  if (JSON.stringify(body).length > MAX_TEXT)
    checker.wrong(['source', 'body'], 'is longer than 100,000 characters');
  checkTextsWithin(checker, body, ['source', 'body']);
  return typeof body === 'string' ? { text: body } : { json: body };
}

function checkTextsWithin(checker: Checker, value: unknown, path: Path): void {
  if (typeof value === 'string') checkText(checker, value, path);
  else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      checkTextsWithin(checker, inner, [...path, Array.isArray(value) ? Number(name) : name]);
    }
  }
}

const AUTH_SETTINGS = {
  bearer: ['token'],
  basic: ['username', 'password'],
  header: ['name', 'value'],
  oauth2: ['tokenUrl', 'clientId', 'clientSecret', 'scope', 'audience'],
} as const;
const AUTH_TYPES = ['bearer', 'basic', 'header', 'oauth2'] as const;

function checkAuth(checker: Checker, value: unknown): HttpAuth | null {
  const path = ['source', 'auth'];
  if (isMissing(value)) return null;
  const type = checker.oneOf((value as { type?: unknown }).type, [...path, 'type'], AUTH_TYPES);
  if (type === undefined) return null;
  const settings = checker.map(value, path, { known: ['type', ...AUTH_SETTINGS[type]] });
  const text = (name: string): string => {
    const found = checker.text(settings[name], [...path, name], 10_000) ?? '';
    checkText(checker, found, [...path, name]);
    return found;
  };
  const optional = (name: string) => (isMissing(settings[name]) ? null : text(name));
  switch (type) {
    case 'bearer':
      return { type, token: text('token') };
    case 'basic':
      return { type, username: text('username'), password: optional('password') ?? '' };
    case 'header':
      return { type, name: text('name'), value: text('value') };
    case 'oauth2': {
      const tokenUrl = text('tokenUrl');
      if (tokenUrl !== '') checkUrl(checker, tokenUrl, [...path, 'tokenUrl']);
      const [clientId, clientSecret] = [text('clientId'), text('clientSecret')];
      return {
        type,
        tokenUrl,
        clientId,
        clientSecret,
        scope: optional('scope'),
        audience: optional('audience'),
      };
    }
  }
}

function checkProxy(checker: Checker, value: unknown): string | null {
  const path = ['source', 'proxy'];
  if (isMissing(value)) return null;
  const proxy = checker.text(value, path, 2_048);
  if (proxy === undefined) return null;
  if (!/^https?:\/\//i.test(proxy))
    checker.wrong(path, 'must be an address that begins with http:// or https://');
  checkText(checker, proxy, path);
  return proxy;
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
  const names = isMissing(required)
    ? null
    : (checker.texts(required, ['guards', 'required'], { min: 1, max: 1_000, example: '[email]' }) ?? null);
  if (Object.keys(fields).length === 0) {
    checker.wrong(
      ['guards', isMissing(required) ? 'minFilledPercent' : 'required'],
      'needs `fields`: what they do not name is not counted',
    );
  }
  const minPercent = isMissing(minFilledPercent)
    ? 100
    : (checker.number(minFilledPercent, ['guards', 'minFilledPercent'], { min: 0, max: 100, whole: false }) ??
      100);
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

/** What requests are filled with has to be there, and has to make sense. */
function checkPlaces(checker: Checker, root: Record<string, unknown>, source: HttpSource): void {
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
