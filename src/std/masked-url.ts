/** Addresses that may hold a password, to be shown. */

const HIDDEN = '***';

/** The same without passwords, wherever a URL may have one; a text without any stays as it is. */
export function maskedUrl(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  const secret = [...url.searchParams.keys()].filter((name) => /pass|secret|token/i.test(name));
  if (url.password === '' && secret.length === 0) return text;
  if (url.password !== '') url.password = HIDDEN;
  for (const name of secret) url.searchParams.set(name, HIDDEN);
  return url.href;
}
