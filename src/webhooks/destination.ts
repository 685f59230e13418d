/**
 * The parts of a webhook's requests that are the same for every delivery, their form in the log, and a function that
 * masks credentials in responses.
 */
import type { IncomingHttpHeaders } from 'node:http';

export interface Destination {
  origin: string;
  /** Path and query. */
  path: string;
  /** The URL for the log, without user, password and fragment. */
  url: string;
  /** The headers of every request, in a flat list in which names and values alternate. */
  headers: readonly string[];
  /** The headers of every request in their form for the log, with an empty `content-length`. */
  loggedHeaders: Readonly<Record<string, string>>;
  /** Masks credentials of the request wherever a text from the response contains them. */
  hide(text: string): string;
}

/**
 * Custom headers override the service's defaults, except `content-type`.
 *
 * @param input.headers the custom headers, validated by `headersMistake`
 * @throws TypeError if the URL is invalid; subscribing rejects such URLs
 */
export function destinationOf(input: {
  url: string;
  headers: Readonly<Record<string, string>>;
  userAgent: string;
}): Destination {
  const url = new URL(input.url);
  const custom = Object.entries(input.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const sent: Record<string, string> = {
    'accept-encoding': 'identity',
    'user-agent': input.userAgent,
    ...basicAuthorization(url),
    ...Object.fromEntries(custom),
    'content-type': 'application/json',
  };
  const path = url.pathname + url.search;
  return {
    origin: url.origin,
    path,
    url: url.origin + path,
    headers: Object.entries(sent).flat(),
    loggedHeaders: loggedRequest({ host: url.host, 'content-length': '', ...sent }, input.headers),
    hide: hideEchoes(hiddenValues(sent, input.headers)),
  };
}

/** The user and password of the URL are sent as a header, because they must not appear in the request line. */
function basicAuthorization({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const plain = `${decoded(username)}:${decoded(password)}`;
  return { authorization: `Basic ${Buffer.from(plain, 'utf8').toString('base64')}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A URL may contain a percent sign that is not an escape.
    return text;
  }
}

const MAX_LOGGED_NAMES = 50;
const MAX_LOGGED_CHARACTERS = 4_096;
/**
 * Custom headers that are not masked, because their values may occur in any response (such as `application/json`),
 * which masking would garble.
 */
const COMMON = /^(?:accept(?:-.*)?|cache-control|user-agent)$/;
/** Replaces hidden values. */
export const HIDDEN = '***';

/** Request headers for the log: `***` replaces credentials and the values of custom headers. */
export function loggedRequest(
  sent: Record<string, string>,
  own: Record<string, string>,
): Record<string, string> {
  const logged = { ...sent };
  for (const name of hiddenNames(sent, own)) logged[name] = HIDDEN;
  return logged;
}

/** Values of request headers that must be masked wherever a response echoes them. */
function hiddenValues(sent: Record<string, string>, own: Record<string, string>): string[] {
  const names = hiddenNames(sent, own).filter((name) => !COMMON.test(name));
  return names.map((name) => sent[name] as string);
}

function hiddenNames(sent: Record<string, string>, own: Record<string, string>): string[] {
  const names = ['authorization', ...Object.keys(own).map((name) => name.toLowerCase())];
  return names.filter((name) => Object.hasOwn(sent, name));
}

/**
 * Response headers for the log, limited to 50 names and 4,096 characters. Further headers are omitted.
 *
 * @param hide masks each value before it is truncated
 */
export function loggedResponse(
  came: IncomingHttpHeaders,
  hide = (value: string) => value,
): Record<string, string> {
  const logged: Record<string, string> = {};
  let room = MAX_LOGGED_CHARACTERS;
  let names = 0;
  for (const name in came) {
    const value = came[name] ?? '';
    names += 1;
    if (names > MAX_LOGGED_NAMES || name.length >= room) break;
    room -= name.length;
    const text = hide(typeof value === 'string' ? value : value.join(', ')).slice(0, room);
    room -= text.length;
    // An endpoint may send a header named `__proto__`, which cannot be assigned like other names. PostgreSQL does not
    // allow NUL in text.
    if (name !== '__proto__') logged[name] = text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text;
  }
  return logged;
}

/** Values shorter than this are not masked, because they would also match ordinary text. */
const MIN_CHARACTERS = 8;

/**
 * Returns a function that replaces each of these header values with `***`. The function finds a value as it was sent,
 * without its scheme (`Bearer …`), decoded (`Basic …`), and escaped as in JSON or in a URL. It also finds a value that
 * is truncated at the end of the text, because only the start of a response is kept.
 */
export function hideEchoes(values: readonly string[]): (text: string) => string {
  const hidden = [...new Set(values.flatMap(meanings).flatMap(spellings))]
    .filter((text) => text.length >= MIN_CHARACTERS)
    .sort((a, b) => b.length - a.length);
  if (hidden.length === 0) return (text) => text;
  return (text) => {
    const masked = hidden.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text);
    const cut = Math.max(...hidden.map((secret) => cutLength(masked, secret)));
    return cut === 0 ? masked : masked.slice(0, -cut) + HIDDEN;
  };
}

function meanings(value: string): string[] {
  const [, scheme = '', credentials] = /^(\S+) +(\S+)$/.exec(value) ?? [];
  if (credentials === undefined) return [value];
  if (scheme.toLowerCase() !== 'basic') return [value, credentials];
  const plain = Buffer.from(credentials, 'base64').toString('utf8');
  return [value, credentials, plain, plain.slice(plain.indexOf(':') + 1)];
}

function spellings(text: string): string[] {
  return [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text.toWellFormed())];
}

/**
 * Number of characters at the end of a text that are the start of a secret; 0 if so few characters match that this may
 * be a coincidence.
 */
function cutLength(text: string, secret: string): number {
  for (let length = Math.min(secret.length - 1, text.length); length >= MIN_CHARACTERS; length--) {
    if (text.endsWith(secret.slice(0, length))) return length;
  }
  return 0;
}
