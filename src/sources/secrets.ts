/** Fills the secrets of a run into its definition, and masks them in its log and errors. */
import { missingSecret, secretReferences } from '../model/secret-names.ts';
import { printable } from '../std/printable.ts';

/**
 * Returns a JSON value in which all placeholders for secrets are replaced.
 *
 * @throws Error that says how to set a missing secret
 */
export function fillSecrets<T>(value: T, team: { team: string; secrets: ReadonlyMap<string, string> }): T {
  function fill(inner: unknown): unknown {
    if (typeof inner === 'string') return inner.replace(secretReferences(), secretOf);
    if (Array.isArray(inner)) return inner.map(fill);
    if (typeof inner !== 'object' || inner === null) return inner;
    return Object.fromEntries(Object.entries(inner).map(([name, member]) => [name, fill(member)]));
  }
  function secretOf(_reference: string, name: string): string {
    const secret = team.secrets.get(name);
    if (secret === undefined) throw new Error(missingSecret(team.team, name));
    return secret;
  }
  return fill(value) as T;
}

/** Returns the values of the secrets to which a JSON value refers. */
export function secretsIn(value: unknown, secrets: ReadonlyMap<string, string>): string[] {
  const references = JSON.stringify(value).matchAll(secretReferences());
  return [...new Set([...references].flatMap(([, name = '']) => secrets.get(name) ?? []))];
}

/** Minimum length of a masked secret. Shorter secrets are not masked, because they could be parts of ordinary words. */
const MASKED_LENGTH = 5;

interface Mask {
  /** The length of the longest text that is masked. At least 1. */
  longest: number;
  /** Replaces each secret with `***`. */
  apply(text: string): string;
  /** Replaces each secret with `***`, and removes terminal control characters. */
  clean(text: string): string;
}

/**
 * Masks each secret in all forms in which it may be printed: each line by itself (a private key has several lines),
 * escaped as in JSON or in a URL, and in base64.
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

export interface Redactor {
  /** Adds texts to mask, in the same forms as `createMask`. */
  add(...texts: string[]): void;
  /** Replaces each credential with `***`. */
  mask(text: string): string;
  /** Masks the message and the stack of an error by changing the error. Returns the error. */
  masked(error: unknown): unknown;
  /**
   * Returns the length of the longest masked text. If a text was cut, this many characters at its end may contain an
   * unmasked part of a secret.
   */
  longest(): number;
}

/** @param secrets the texts to mask from the start */
export function createRedactor(secrets: readonly string[] = []): Redactor {
  const known = new Set(secrets);
  let made: Mask | undefined;
  function current(): Mask {
    made ??= createMask(new Map([...known].map((text) => [text, text])));
    return made;
  }
  const mask = (text: string) => current().apply(text);
  return {
    add(...texts) {
      for (const text of texts) known.add(text);
      made = undefined;
    },
    mask,
    masked(error) {
      if (!(error instanceof Error) || mask(error.message) === error.message) return error;
      error.stack = mask(error.stack ?? '');
      error.message = mask(error.message);
      return error;
    },
    longest: () => current().longest,
  };
}
