/** Makes texts safe for logs and terminals: removes control characters, and masks passwords in URLs. */

/**
 * Matches control characters except tab and line feed, line separators, and characters that change the direction of
 * text.
 */
const UNPRINTABLE = /[^\P{Cc}\t\n]|[\u2028-\u202e\u2066-\u2069]/gu;

/** Removes characters that a terminal would interpret, such as escape, bell, backspace and bidi controls. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '');
}

const HIDDEN = '***';

/**
 * Masks the password of a URL, and query parameters whose names sound like secrets. Other texts are returned unchanged.
 */
export function maskedUrl(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  const secret = [...url.searchParams.keys()].filter((name) => /pass|secret|token/i.test(name));
  if (url.password === '' && secret.length === 0) return text;
  if (url.password !== '') url.password = HIDDEN;
  for (const name of secret) url.searchParams.set(name, HIDDEN);
  return url.href;
}
