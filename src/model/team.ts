/** Teams, API keys with their scopes, and sessions of the dashboard. */

/** A team owns workflows, webhooks and keys. `slug` also names the folder of its workflow files. */
export interface Team {
  id: string;
  slug: string;
  createdAt: number;
}

/** `admin` may change everything in its team, `operator` everything in the instance. */
export const SCOPES = ['read', 'queue', 'webhooks', 'admin', 'operator'] as const;
export type Scope = (typeof SCOPES)[number];

/** Scopes of keys that are created over the API; keys with `operator` are created at a shell only. */
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
  /** The first characters of the key, for recognizing it. */
  prefix: string;
  scopes: Scope[];
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  /** When the key was last used, updated up to a minute late; null: not used since `watchedFrom`. */
  lastUsedAt: number | null;
  /** When recording the use of the key began. */
  watchedFrom: number;
}

/** Whether a key is valid at this time. */
export function isUsable(key: ApiKey, nowMs: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt > nowMs);
}

/** Whether a key that expires at `one` outlives a key that expires at `other`; null: never expires. */
export function livesLonger(one: number | null, other: number | null): boolean {
  return other !== null && (one === null || one > other);
}

/** After this time without use, a key may no longer be needed. */
export const UNUSED_MS = 90 * 86_400_000;
/** Owners are warned this long before a key expires, or a fifth of its lifetime if that is shorter. */
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

/** Whether the scopes include this one: `admin` implies all scopes of the team, `operator` implies all scopes. */
export function allows(scopes: readonly Scope[], needed: Scope): boolean {
  if (scopes.includes(needed) || scopes.includes('operator')) return true;
  return needed !== 'operator' && scopes.includes('admin');
}

/** Whether the text can be a team's slug: safe as a folder name and in the name of an environment variable. */
export function isTeamSlug(text: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,62}$/.test(text);
}

const MINUTE_MS = 60_000;

/** A session expires after this time without a request. */
export const SESSION_MS = 12 * 60 * MINUTE_MS;
/** A session is renewed at most this often, so that not every request writes. */
export const RENEW_AFTER_MS = 5 * MINUTE_MS;
/** A sign-in link works once, within this time. */
export const LINK_MS = 30 * MINUTE_MS;
/** One more session ends the oldest, so that a script that repeatedly signs in cannot fill the table. */
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
