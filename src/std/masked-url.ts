/** URLs, such as those of databases, without their passwords. */

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
