/** Hides the values of secrets in what a run says: logs and errors are stored, shown and sent on. */
import { printable } from '../../std/printable.ts';

/** Shorter secrets are not masked: they would mask ordinary words. */
const MASKED_LENGTH = 5;

export interface Mask {
  /** How long the longest text is that is masked; at least 1. */
  longest: number;
  /** The same text with `***` in the place of each secret. */
  apply(text: string): string;
  /** Likewise, and without what would act on a terminal. */
  clean(text: string): string;
}

/**
 * Knows each secret as it is printed: one of several lines, such as a private key, line by line; and as it stands
 * in JSON, where quotes and line breaks are escaped, in addresses and in base64.
 */
export function createMask(secrets: ReadonlyMap<string, string>): Mask {
  const written = [...secrets.values()].flatMap((value) => [
    ...value.split(/\r?\n/),
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value.toWellFormed()),
    new URLSearchParams({ v: value }).toString().slice(2),
    Buffer.from(value).toString('base64url'),
    Buffer.from(value).toString('base64').replace(/=+$/, ''),
  ]);
  const hidden = [...new Set(written)]
    .filter((text) => text.length >= MASKED_LENGTH)
    .sort((a, b) => b.length - a.length);
  const apply = (text: string): string =>
    hidden.reduce((masked, secret) => masked.replaceAll(secret, '***'), text);
  return {
    longest: Math.max(hidden[0]?.length ?? 0, 1),
    apply,
    clean: (text) => printable(apply(text)),
  };
}
