/** Masks the credentials of a webhook in responses that echo them, because responses are stored and shown. */
import { HIDDEN } from './logged-headers.ts';

/** Shorter values are not masked, because they would also match ordinary text. */
const MIN_CHARACTERS = 8;

/**
 * Returns a function that replaces each of these header values by `***`: as it was sent, without its scheme
 * (`Bearer …`), decoded (`Basic …`), escaped as in JSON or in a URL, and cut off at the end of the text, because only
 * the start of a response is kept.
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

/** How many characters at the end of a text are the start of a secret; 0 when they are too few to tell. */
function cutLength(text: string, secret: string): number {
  for (let length = Math.min(secret.length - 1, text.length); length >= MIN_CHARACTERS; length--) {
    if (text.endsWith(secret.slice(0, length))) return length;
  }
  return 0;
}
