/** Masks secrets in the logs and errors of a run, which are stored, shown and forwarded. */
import { printable } from '../std/printable.ts';

/** Shorter secrets are not masked, because that would mask ordinary words. */
const MASKED_LENGTH = 5;

export interface Mask {
  /** The length of the longest text that is masked; at least 1. */
  longest: number;
  /** The text with `***` for each secret. */
  apply(text: string): string;
  /** The same, without terminal control characters. */
  clean(text: string): string;
}

/**
 * Masks each secret in the forms in which it may be printed: line by line (a private key has several lines), escaped as
 * in JSON or in a URL, and in base64.
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
