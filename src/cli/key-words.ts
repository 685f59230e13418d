/** The flags of `flowhook keys`, and keys as lines of a list. */
import { DEFAULT_SCOPES, type KeyConcern, SCOPES, type Scope } from '../model/team.ts';
import { confirm } from './confirm.ts';
import { UsageError } from './exit.ts';
import type { Options } from './settings.ts';
import type { Head } from './table.ts';

const DAY_MS = 86_400_000;
const MAX_DAYS = 36_500;

/** @throws UsageError */
export function scopesFrom({ scopes }: Options): readonly Scope[] {
  return scopes === undefined ? DEFAULT_SCOPES : readScopes(String(scopes));
}

/** When a new key expires, in epoch milliseconds; null: never. @throws UsageError */
export function expiryFrom({ expiresIn }: Options, nowMs: number): number | null {
  if (expiresIn === undefined) return null;
  const days = Number(expiresIn);
  if (days > 0 && days <= MAX_DAYS) return nowMs + days * DAY_MS;
  throw new UsageError(`--expires-in must be a number of days up to ${MAX_DAYS}, found "${expiresIn}"`);
}

const CONCERNS: Readonly<Record<KeyConcern, string>> = {
  unused: 'unused for 90 days: revoke it if nobody needs it',
  expires_soon: 'ends soon: make another one',
};

/** @throws UsageError unless the user agrees */
export async function confirmRevoking(
  options: Options,
  key: { id: string; team: string; name: string; lastUsedAt: string | null; revokedAt: string | null },
): Promise<void> {
  if (key.revokedAt !== null) return;
  const name = key.name === '' ? '' : ` ("${key.name}")`;
  await confirm(options, {
    what:
      `The key ${key.id}${name} of the team "${key.team}", ${usedWords(key)}, will be revoked for good: ` +
      'every program that uses it is refused from then on',
    otherwise: 'nothing was revoked',
  });
}

function usedWords({ lastUsedAt }: { lastUsedAt: string | null }): string {
  return lastUsedAt === null ? 'never used' : `last used ${lastUsedAt}`;
}

/** What is above the cells of `keyCells`. */
export const KEY_HEADS: readonly Head[] = [
  { name: 'key' },
  { name: 'team', drop: 3 },
  { name: 'begins with', drop: 4 },
  { name: 'scopes', drop: 5 },
  { name: 'created', drop: 1 },
  { name: 'name' },
  { name: 'used', drop: 6 },
  { name: 'state' },
  { name: 'remark', drop: 2 },
];

/** The cells of one line of a list. Times are ISO 8601. */
export function keyCells(key: {
  id: string;
  team: string;
  name: string;
  prefix: string;
  scopes: readonly Scope[];
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
  concern: KeyConcern | null;
}): string[] {
  const { id, team, prefix, scopes, createdAt, name, expiresAt, revokedAt, concern } = key;
  const used = usedWords(key);
  const state =
    revokedAt !== null ? `revoked ${revokedAt}` : expiresAt === null ? '' : `expires ${expiresAt}`;
  const words = concern === null ? '' : `(${CONCERNS[concern]})`;
  return [id, team, `${prefix}…`, scopes.join(','), createdAt, name, used, state, words];
}

function readScopes(list: string): Scope[] {
  const scopes = list.split(',').map((scope) => scope.trim());
  const unknown = scopes.filter((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (unknown.length > 0) {
    throw new UsageError(
      `--scopes: there is no scope ${unknown.map((scope) => `"${scope}"`).join(', ')}. There are: ${SCOPES.join(', ')}`,
    );
  }
  return scopes as Scope[];
}
