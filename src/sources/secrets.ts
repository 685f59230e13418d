/** The secrets of a run: filled into its definition, and masked in its log and errors. */
import { missingSecret, secretReferences } from '../model/secret-names.ts';
import { printable } from '../std/printable.ts';

/**
 * Returns a JSON value with all secret placeholders replaced.
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

/** The values of the secrets that a JSON value refers to. */
export function secretsIn(value: unknown, secrets: ReadonlyMap<string, string>): string[] {
  const references = JSON.stringify(value).matchAll(secretReferences());
  return [...new Set([...references].flatMap(([, name = '']) => secrets.get(name) ?? []))];
}

/** Shorter secrets are not masked, because they could be parts of ordinary words. */
const MASKED_LENGTH = 5;

interface Mask {
  /** The length of the longest text that is masked; at least 1. */
  longest: number;
  /** Replaces each secret with `***`. */
  apply(text: string): string;
  /** Like `apply`, and removes terminal control characters. */
  clean(text: string): string;
}

/**
 * Masks each secret in all forms in which it may be printed: line by line (a private key has several lines), escaped as in
 * JSON or in a URL, and in base64.
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
  /** Adds texts to mask, in all forms of `createMask`. */
  add(...texts: string[]): void;
  /** Replaces each credential with `***`. */
  mask(text: string): string;
  /** Masks the message and stack of an error, in place. */
  masked(error: unknown): unknown;
  /** The length of the longest masked text. This close to the end of a cut text, part of a secret may be unmasked. */
  longest(): number;
}

/** @param secrets the initial texts to mask */
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
