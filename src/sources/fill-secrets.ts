/** Replaces `${secret.NAME}` in the texts of a definition by the secrets of its team. */
import { missingSecret, secretReferences } from '../model/secret-names.ts';

/**
 * The same JSON value with all placeholders replaced.
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
