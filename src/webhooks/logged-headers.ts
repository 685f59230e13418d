/** Which headers of an attempt the log shows: without credentials, and without the values of custom headers. */
import type { IncomingHttpHeaders } from 'node:http';

const MAX_LOGGED_NAMES = 50;
const MAX_LOGGED_CHARACTERS = 4_096;
/** Custom headers whose values may occur in any response, such as `application/json`: hiding them would garble it. */
const COMMON = /^(?:accept(?:-.*)?|cache-control|user-agent)$/;
/** Replaces hidden values. */
export const HIDDEN = '***';

/**
 * Request headers for the log: `***` instead of credentials and of the values of custom headers.
 *
 * @param own the custom headers of the webhook
 */
export function loggedRequest(
  sent: Record<string, string>,
  own: Record<string, string>,
): Record<string, string> {
  const logged = { ...sent };
  for (const name of hiddenNames(sent, own)) logged[name] = HIDDEN;
  return logged;
}

/** The values in request headers that must be hidden wherever a response echoes them. */
export function hiddenValues(sent: Record<string, string>, own: Record<string, string>): string[] {
  const names = hiddenNames(sent, own).filter((name) => !COMMON.test(name));
  return names.map((name) => sent[name] as string);
}

function hiddenNames(sent: Record<string, string>, own: Record<string, string>): string[] {
  const names = ['authorization', ...Object.keys(own).map((name) => name.toLowerCase())];
  return names.filter((name) => Object.hasOwn(sent, name));
}

/**
 * Response headers for the log: at most 50 names and 4,096 characters; the rest is left out.
 *
 * @param hide masks each value before it is cut
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
    // An endpoint may name a header `__proto__`. PostgreSQL does not allow NUL in text.
    if (name !== '__proto__') logged[name] = text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text;
  }
  return logged;
}
