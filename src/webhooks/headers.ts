/** Headers that a webhook has of its own: which may be set, and what the log shows of headers. */
import type { IncomingHttpHeaders } from 'node:http';

const MAX_HEADERS = 20;
const MAX_CHARACTERS = 4_096;
/** Those that frame the message, that we set ourselves, or that a proxy on the way would act upon. */
const DENIED =
  /^(?:host|connection|keep-alive|transfer-encoding|trailer|expect|te|upgrade|(?:content|webhook|proxy)-.*)$/;
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/;

const MAX_LOGGED_NAMES = 50;
const MAX_LOGGED_CHARACTERS = 4_096;
/** Those whose values stand in any answer, such as `application/json`. */
const COMMON = /^(?:accept(?:-.*)?|cache-control|user-agent)$/;
/** What stands in the log for a value that is nobody's business. */
const HIDDEN = '***';

/**
 * Says what is wrong with headers that somebody wants to give a webhook: an object of at most 20 names with text
 * values, 4,096 characters in all.
 *
 * @returns a sentence, or nothing when they may be set
 */
export function headersMistake(headers: unknown): string | undefined {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    return 'headers must be an object of names and text values, such as { "x-source": "flowhook" }';
  }
  const entries = Object.entries(headers as Record<string, unknown>);
  if (entries.length > MAX_HEADERS) {
    return `headers must hold at most ${MAX_HEADERS} names; there are ${entries.length}. Leave some out`;
  }
  const names = new Set<string>();
  let characters = 0;
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, 100));
    if (!NAME.test(name)) {
      return `headers: ${shown} is no header name. Use letters, digits and hyphens`;
    }
    const lower = name.toLowerCase();
    if (DENIED.test(lower)) {
      return `headers: ${shown} cannot be set, it belongs to the delivery itself. Use another name, such as x-${lower}`;
    }
    if (names.has(lower)) {
      return `headers: ${shown} is there twice; upper and lower case make no difference. Keep one of them`;
    }
    names.add(lower);
    if (typeof value !== 'string') return `headers: the value of ${shown} must be text`;
    if (!VALUE.test(value)) {
      return (
        `headers: the value of ${shown} must be of visible ASCII characters, with spaces only between them. ` +
        'Encode anything else, for example as base64'
      );
    }
    characters += name.length + value.length;
  }
  if (characters > MAX_CHARACTERS) {
    return `headers must have at most ${MAX_CHARACTERS} characters in all; they have ${characters}. Shorten them`;
  }
  return undefined;
}

/** Headers as they were sent, for the log: without credentials, and without the values of the webhook's own. */
export function loggedRequest(
  sent: Record<string, string>,
  own: Record<string, string>,
): Record<string, string> {
  const logged = { ...sent };
  for (const name of hiddenNames(sent, own)) logged[name] = HIDDEN;
  return logged;
}

/** Of headers as they were sent: the values that the log does not show wherever they come back. */
export function hiddenValues(sent: Record<string, string>, own: Record<string, string>): string[] {
  const names = hiddenNames(sent, own).filter((name) => !COMMON.test(name));
  return names.map((name) => sent[name] as string);
}

function hiddenNames(sent: Record<string, string>, own: Record<string, string>): string[] {
  const names = ['authorization', ...Object.keys(own).map((name) => name.toLowerCase())];
  return names.filter((name) => Object.hasOwn(sent, name));
}

/**
 * Headers as they came, for the log: at most 50 names and 4,096 characters, the rest is left out.
 *
 * @param hide what is done to each value before it is cut
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
    // An endpoint may call a header `__proto__`. PostgreSQL takes no NUL in text.
    if (name !== '__proto__') logged[name] = text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text;
  }
  return logged;
}
