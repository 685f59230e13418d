/** Checks the requests of an `http` source: URLs, method, headers, body, authentication and proxy. */
import { HTTP_METHODS, type HttpAuth, type HttpBody, type HttpMethod } from '../model/http-source.ts';
import { secretReferences, withoutPlaces } from '../model/secret-names.ts';
import { asMap, type Checker, describe, leavesOf, type Path, type Section } from './section.ts';

const MAX_URLS = 10_000;
const MAX_TEXT = 100_000;
/** A message shows at most this many characters of a placeholder. */
const MAX_SHOWN = 60;

/**
 * Reads `source.url`, which is one URL or a list of URLs. Like the other checks in this file, it returns a value even
 * after a mistake.
 */
export function checkUrls(source: Section): string[] {
  const value = source.values.url;
  const path = [...source.path, 'url'];
  if (typeof value === 'string') {
    checkUrl(source.checker, value, path);
    return [value];
  }
  if (!Array.isArray(value)) {
    const example = '"https://example.com/people"';
    source.checker.wrong(
      path,
      `must be a URL such as ${example}, or a list of URLs, found ${describe(value)}`,
    );
    return [];
  }
  const urls = source.texts('url', { max: MAX_URLS, example: '["https://example.com/people"]' }) ?? [];
  for (const [position, url] of urls.entries()) checkUrl(source.checker, url, [...path, position]);
  return urls;
}

function checkUrl(checker: Checker, url: string, path: Path): void {
  const parsed = URL.parse(withoutPlaces(url));
  if (parsed === null || !/^https?:\/\//i.test(url)) {
    checker.wrong(path, `must be a URL that starts with http:// or https://, found ${describe(url)}`);
  } else if (parsed.username !== '' || parsed.password !== '') {
    checker.wrong(
      path,
      'must not contain a user name. Write `auth: { type: basic, username: …, password: … }`',
    );
  }
  if (/^https?:\/\/[^/?#]*\$\{(?:state\.\w+|page)\}/i.test(url)) {
    checker.wrong(
      path,
      'must have a fixed host: values from responses must not decide where requests go. Put placeholders after the host',
    );
  }
  checkPlaceholders(checker, url, path);
}

/** Records a mistake if a string that will be sent contains an unknown placeholder. */
export function checkPlaceholders(checker: Checker, text: string, path: Path): void {
  const rest = text.replace(secretReferences(), '').replace(/\$\{(?:state\.\w+|page)\}/g, '');
  const found = /\$\{[^}]*\}?/.exec(rest)?.[0];
  if (found === undefined) return;
  const place = found.length > MAX_SHOWN ? `${found.slice(0, MAX_SHOWN)}…` : found;
  checker.wrong(
    path,
    `contains the unknown placeholder ${place}. Known placeholders: $` +
      '{secret.NAME}, $' +
      '{state.NAME} and $' +
      '{page}',
  );
}

export function checkMethod(source: Section, body: HttpBody | null): HttpMethod {
  if (!source.has('method')) return body === null ? 'GET' : 'POST';
  const method = source.oneOf('method', HTTP_METHODS);
  if (method === 'GET' && body !== null)
    source.wrong('method', 'must be POST, PUT or PATCH if there is a body');
  return method ?? 'GET';
}

/** Reads a map of strings. */
export function checkTexts(section: Section, name: string): Record<string, string> {
  const texts: Record<string, string> = {};
  const map = section.free(name, 'must be a map of names to strings');
  for (const key of Object.keys(map.values)) {
    const text = map.read(key, 'must be a string', asSent);
    if (text === undefined) continue;
    checkPlaceholders(section.checker, text, [...map.path, key]);
    texts[key] = text;
  }
  return texts;
}

/** Converts numbers and booleans to the strings that requests send. */
export function asSent(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
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

export function checkHeaders(source: Section): Record<string, string> {
  const headers = checkTexts(source, 'headers');
  for (const [name, text] of Object.entries(headers)) {
    const path = [...source.path, 'headers', name];
    if (checkHeaderName(source.checker, name, path) && /[\r\n\0]/.test(text))
      source.checker.wrong(path, 'must not contain a line break');
  }
  return headers;
}

/** Whether a definition may set this header. If the name is not a string, another check reports it. */
function checkHeaderName(checker: Checker, name: unknown, path: Path): boolean {
  if (typeof name !== 'string' || name === '') return false;
  const isName = /^[!#$%&'*+.^_`|~\w-]+$/.test(name);
  const isOwn = OWN_HEADERS.includes(name.toLowerCase());
  if (!isName) checker.wrong(path, 'is not a valid header name');
  else if (isOwn) checker.wrong(path, 'is set by Flowhook itself. Remove it');
  return isName && !isOwn;
}

export function checkBody(source: Section): HttpBody | null {
  const { body } = source.values;
  if (source.has('body') && source.has('form'))
    source.wrong('form', 'cannot be used with `body`. Remove one of them');
  if (source.has('form')) return { form: checkTexts(source, 'form') };
  if (!source.has('body')) return null;
  if (JSON.stringify(body).length > MAX_TEXT)
    source.wrong('body', 'must have at most 100,000 characters as JSON');
  for (const { path, leaf } of leavesOf(body, [...source.path, 'body'])) {
    if (typeof leaf === 'string') checkPlaceholders(source.checker, leaf, path);
  }
  return typeof body === 'string' ? { text: body } : { json: body };
}

const AUTH_SETTINGS = {
  bearer: ['token'],
  basic: ['username', 'password'],
  header: ['name', 'value'],
  oauth2: ['tokenUrl', 'clientId', 'clientSecret', 'scope', 'audience'],
} as const;
const AUTH_TYPES = ['bearer', 'basic', 'header', 'oauth2'] as const;

export function checkAuth(source: Section): HttpAuth | null {
  const example = 'must be a map such as { type: bearer, token: "$' + '{secret.TOKEN}" }';
  if (source.read('auth', example, asMap, null) === null) return null;
  const type = source.section('auth', null).oneOf('type', AUTH_TYPES);
  if (type === undefined) return null;
  const auth = source.section('auth', ['type', ...AUTH_SETTINGS[type]]);
  const { checker, path } = auth;
  const text = (name: string): string => {
    const found = auth.text(name, 10_000) ?? '';
    checkPlaceholders(checker, found, [...path, name]);
    return found;
  };
  const optional = (name: string) => (auth.has(name) ? text(name) : null);
  switch (type) {
    case 'bearer':
      return { type, token: text('token') };
    case 'basic':
      return { type, username: text('username'), password: optional('password') ?? '' };
    case 'header':
      checkHeaderName(checker, auth.values.name, [...path, 'name']);
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

export function checkProxy(source: Section): string | null {
  const proxy = source.text('proxy', 2_048, null);
  if (proxy === null) return null;
  if (!/^https?:\/\//i.test(proxy) || !URL.canParse(withoutPlaces(proxy)))
    source.wrong('proxy', `must be a URL such as http://proxy.example.com:3128, found ${describe(proxy)}`);
  checkPlaceholders(source.checker, proxy, [...source.path, 'proxy']);
  return proxy;
}
