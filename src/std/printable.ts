/** Text made fit for a log and a terminal: without control characters, URLs without their passwords. */

/** Control characters but for tab and line feed, line separators, and those that change the direction of text. */
const UNPRINTABLE = /[^\P{Cc}\t\n]|[\u2028-\u202e\u2066-\u2069]/gu;

/** Removes what a terminal would act upon instead of showing: escape and bell characters, backspaces, bidi controls. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '');
}

const HIDDEN = '***';

/** Masks the password, and query parameters that are named like a secret; any other text stays as it is. */
export function maskedUrl(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  const secret = [...url.searchParams.keys()].filter((name) => /pass|secret|token/i.test(name));
  if (url.password === '' && secret.length === 0) return text;
  if (url.password !== '') url.password = HIDDEN;
  for (const name of secret) url.searchParams.set(name, HIDDEN);
  return url.href;
}
