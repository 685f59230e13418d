/** Hides the credentials that a webhook sends where its endpoint sends them back: answers are stored and shown. */

/** Shorter values are not hidden: they would hide ordinary text. */
const MIN_CHARACTERS = 8;
const HIDDEN = '***';

/**
 * Answers a function that puts `***` in the place of each of these header values: as it was sent, without its scheme
 * (`Bearer …`), with what is encoded in it (`Basic …`), as it stands in JSON or in an address, and cut off at the end
 * of a text, of which only the beginning is kept.
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

/** How many characters at the end of a text are the beginning of a secret; 0 when they are too few to tell. */
function cutLength(text: string, secret: string): number {
  for (let length = Math.min(secret.length - 1, text.length); length >= MIN_CHARACTERS; length--) {
    if (text.endsWith(secret.slice(0, length))) return length;
  }
  return 0;
}
