/** Teams, API keys with their scopes, and sessions of the dashboard. */

/** A team owns workflows, webhooks and keys. `slug` also names the folder of its workflow files. */
export interface Team {
  id: string;
  slug: string;
  createdAt: number;
}

/** `admin` may change everything in the team of the key, `operator` everything in the instance. */
export const SCOPES = ['read', 'queue', 'webhooks', 'admin', 'operator'] as const;
export type Scope = (typeof SCOPES)[number];

/** Scopes of keys that can be created over the API. Keys with the scope `operator` can be created only at a shell. */
export const TEAM_SCOPES = ['read', 'queue', 'webhooks', 'admin'] as const satisfies readonly Scope[];

export const MAX_KEY_NAME = 200;

/** The slug of the team that every server creates when it starts. */
export const DEFAULT_TEAM = 'default';

/** Scopes of a key by default. */
export const DEFAULT_SCOPES: readonly Scope[] = ['read', 'queue', 'webhooks'];

/** A stored API key, without the key itself. Times in epoch milliseconds. */
export interface ApiKey {
  id: string;
  teamId: string;
  name: string;
  /** SHA-256 of the key, as hex. */
  hash: string;
  /** The first characters of the key, by which its owner recognizes the key. */
  prefix: string;
  scopes: Scope[];
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  /** When the key was last used, updated with a delay of up to a minute; null: not used since `watchedFrom`. */
  lastUsedAt: number | null;
  /** When the service began to record the use of this key. */
  watchedFrom: number;
}

/** Whether a key is valid at this time. */
export function isUsable(key: ApiKey, nowMs: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt > nowMs);
}

/** Whether a key that expires at `one` outlives a key that expires at `other`. Null: the key never expires. */
export function livesLonger(one: number | null, other: number | null): boolean {
  return other !== null && (one === null || one > other);
}

/** A key that was not used for this long is reported as `unused`. */
export const UNUSED_MS = 90 * 86_400_000;
/** Owners are warned this long before a key expires, or for the last fifth of the key's lifetime if that is shorter. */
export const EXPIRES_SOON_MS = 14 * 86_400_000;

export const KEY_CONCERNS = ['unused', 'expires_soon'] as const;
export type KeyConcern = (typeof KEY_CONCERNS)[number];

/** Why the owner should look at a key; null if there is no reason, or if the key is no longer valid. */
export function keyConcern(key: ApiKey, nowMs: number): KeyConcern | null {
  if (!isUsable(key, nowMs)) return null;
  if (key.expiresAt !== null) {
    const soonMs = Math.min(EXPIRES_SOON_MS, (key.expiresAt - key.createdAt) / 5);
    if (key.expiresAt - nowMs <= soonMs) return 'expires_soon';
  }
  return nowMs - (key.lastUsedAt ?? key.watchedFrom) >= UNUSED_MS ? 'unused' : null;
}

/** What a route requires of a key: a scope, one of several, or nothing beyond being valid. */
export type RequiredScope = Scope | readonly Scope[] | 'any';

/**
 * Whether a list of scopes grants what is needed. `admin` grants all scopes of the team; `operator` grants all scopes.
 */
export function allows(scopes: readonly Scope[], needed: RequiredScope): boolean {
  if (needed === 'any') return true;
  return [needed].flat().some((one: Scope) => {
    if (scopes.includes(one) || scopes.includes('operator')) return true;
    return one !== 'operator' && scopes.includes('admin');
  });
}

/** The scopes that are needed, as an error names them: `read`, or `read` or `webhooks`. */
export function scopeWords(needed: RequiredScope): string {
  return [needed]
    .flat()
    .map((one) => `\`${one}\``)
    .join(' or ');
}

/**
 * Whether the text can be the slug of a team, which must be safe as a folder name and in the name of an environment
 * variable.
 */
export function isTeamSlug(text: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,62}$/.test(text);
}

const MINUTE_MS = 60_000;

/** Time without a request after which a session expires. */
export const SESSION_MS = 12 * 60 * MINUTE_MS;
/** A session is renewed at most once in this time, so that not every request writes to the database. */
export const RENEW_AFTER_MS = 5 * MINUTE_MS;
/** A sign-in link expires after this time. It works only once. */
export const LINK_MS = 30 * MINUTE_MS;
/**
 * Maximum number of sessions of a key. A further sign-in ends the oldest session, so that a script that signs in
 * repeatedly cannot fill the table.
 */
export const MAX_SESSIONS_OF_KEY = 100;

/** A signed-in user, with the permissions and expiry of an API key. Times in epoch milliseconds. */
export interface Session {
  teamId: string;
  keyId: string;
  createdAt: number;
  expiresAt: number;
}

export function isToRenew({ expiresAt }: Session, nowMs: number): boolean {
  return expiresAt - nowMs <= SESSION_MS - RENEW_AFTER_MS;
}
