/** Checks the requests of an `http` source: URLs, method, headers, body, authentication and proxy. */
import { HTTP_METHODS, type HttpAuth, type HttpBody, type HttpMethod } from '../model/http-source.ts';
import { secretReferences, withoutPlaces } from '../model/secret-names.ts';
import { type Checker, describe, isMissing, type Path } from './checker.ts';

const MAX_URLS = 10_000;
const MAX_TEXT = 100_000;
/** Of a placeholder in a message. */
const MAX_SHOWN = 60;

/** `source.url`, one or several. Like the other checks of this file, it records mistakes and returns a value all the same. */
export function checkUrls(checker: Checker, value: unknown): string[] {
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
  const parsed = URL.parse(withoutPlaces(url));
  if (parsed === null || !/^https?:\/\//i.test(url)) {
    checker.wrong(path, `must be an address that begins with http:// or https://, found ${describe(url)}`);
  } else if (parsed.username !== '' || parsed.password !== '') {
    checker.wrong(path, 'must not hold a user: write `auth: { type: basic, username: …, password: … }`');
  }
  if (/^https?:\/\/[^/?#]*\$\{(?:state\.\w+|page)\}/i.test(url)) {
    checker.wrong(
      path,
      'must name its host: what a source answered must not choose who is asked. Put it behind the first /',
    );
  }
  checkText(checker, url, path);
}

export function checkMethod(checker: Checker, value: unknown, body: HttpBody | null): HttpMethod {
  const path = ['source', 'method'];
  if (isMissing(value)) return body === null ? 'GET' : 'POST';
  const method = checker.oneOf(value, path, HTTP_METHODS);
  if (method === undefined) return 'GET';
  if (method === 'GET' && body !== null) checker.wrong(path, 'must be POST where a body is sent');
  return method;
}

/** Checks the placeholders of a text that is sent. */
function checkText(checker: Checker, text: string, path: Path): void {
  const rest = text.replace(secretReferences(), '').replace(/\$\{(?:state\.\w+|page)\}/g, '');
  const found = /\$\{[^}]*\}?/.exec(rest)?.[0];
  if (found === undefined) return;
  const place = found.length > MAX_SHOWN ? `${found.slice(0, MAX_SHOWN)}…` : found;
  checker.wrong(
    path,
    `holds ${place}, which means nothing here. There are $` +
      '{secret.NAME}, $' +
      '{state.NAME} and $' +
      '{page}',
  );
}

/** A map of texts. Numbers and booleans are taken as texts, because that is how they are sent. */
export function checkTexts(checker: Checker, value: unknown, path: Path): Record<string, string> {
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

export function checkHeaders(checker: Checker, value: unknown): Record<string, string> {
  const headers = checkTexts(checker, value, ['source', 'headers']);
  for (const [name, text] of Object.entries(headers)) {
    const path = ['source', 'headers', name];
    if (checkHeaderName(checker, name, path) && /[\r\n\0]/.test(text))
      checker.wrong(path, 'must not hold a line break');
  }
  return headers;
}

/** Whether it is a header name that may be set. Values that are no text are left to other checks. */
function checkHeaderName(checker: Checker, name: unknown, path: Path): boolean {
  if (typeof name !== 'string' || name === '') return false;
  const isName = /^[!#$%&'*+.^_`|~\w-]+$/.test(name);
  const isOwn = OWN_HEADERS.includes(name.toLowerCase());
  if (!isName) checker.wrong(path, 'is not a name that a header can have');
  else if (isOwn) checker.wrong(path, 'is set by Flowhook itself. Remove it');
  return isName && !isOwn;
}

export function checkBody(checker: Checker, { body, form }: Record<string, unknown>): HttpBody | null {
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

export function checkAuth(checker: Checker, value: unknown): HttpAuth | null {
  const path = ['source', 'auth'];
  if (isMissing(value)) return null;
  if (typeof value !== 'object' || Array.isArray(value)) {
    checker.wrong(
      path,
      `must be a map such as { type: bearer, token: "$\{secret.TOKEN}" }, found ${describe(value)}`,
    );
    return null;
  }
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
      checkHeaderName(checker, settings.name, [...path, 'name']);
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

export function checkProxy(checker: Checker, value: unknown): string | null {
  const path = ['source', 'proxy'];
  if (isMissing(value)) return null;
  const proxy = checker.text(value, path, 2_048);
  if (proxy === undefined) return null;
  if (!/^https?:\/\//i.test(proxy) || !URL.canParse(withoutPlaces(proxy)))
    checker.wrong(path, `must be an address such as http://proxy.example.com:3128, found ${describe(proxy)}`);
  checkText(checker, proxy, path);
  return proxy;
}
