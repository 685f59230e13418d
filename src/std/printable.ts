/** Text for logs and terminals: without control characters, and URLs without passwords. */

/** Control characters except tab and line feed, line separators, and characters that change the direction of text. */
const UNPRINTABLE = /[^\P{Cc}\t\n]|[\u2028-\u202e\u2066-\u2069]/gu;

/** Removes characters that a terminal would interpret: escape, bell, backspace, bidi controls. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '');
}

const HIDDEN = '***';

/** Masks the password and query parameters with secret-sounding names. Other texts are returned unchanged. */
export function maskedUrl(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  const secret = [...url.searchParams.keys()].filter((name) => /pass|secret|token/i.test(name));
  if (url.password === '' && secret.length === 0) return text;
  if (url.password !== '') url.password = HIDDEN;
  for (const name of secret) url.searchParams.set(name, HIDDEN);
  return url.href;
}
