/** Teams, their keys and what a key may do, and sessions of the dashboard. */

/** Owns workflows, webhooks and keys. `slug` is also the name of its folder of workflow files. */
export interface Team {
  id: string;
  slug: string;
  createdAt: number;
}

/** `admin` changes everything of its team; `operator` the whole instance. */
export const SCOPES = ['read', 'queue', 'webhooks', 'admin', 'operator'] as const;
export type Scope = (typeof SCOPES)[number];

/** What a key that is made over the API may have: `operator` is given at the shell alone. */
export const TEAM_SCOPES = ['read', 'queue', 'webhooks', 'admin'] as const satisfies readonly Scope[];

export const MAX_KEY_NAME = 200;

/** The slug of the team that every server creates when it starts. */
export const DEFAULT_TEAM = 'default';

/** What a key gets when no scopes are named. */
export const DEFAULT_SCOPES: readonly Scope[] = ['read', 'queue', 'webhooks'];

/** An API key as it is stored: never the key itself. Times in epoch milliseconds. */
export interface ApiKey {
  id: string;
  teamId: string;
  name: string;
  /** SHA-256 of the key, as hex. */
  hash: string;
  /** The first characters of the key, to recognise it by. */
  prefix: string;
  scopes: Scope[];
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  /** When it was last used, up to a minute late; null: not since `watchedFrom`. */
  lastUsedAt: number | null;
  /** Since when its use is recorded: its creation, or the upgrade to a version that does so. */
  watchedFrom: number;
}

/** Whether a key may be used at this time. */
export function isUsable(key: ApiKey, nowMs: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt > nowMs);
}

/** Whether a key that expires at `one` works longer than a key that expires at `other`; null: never. */
export function livesLonger(one: number | null, other: number | null): boolean {
  return other !== null && (one === null || one > other);
}

/** A key that was not used for this long may no longer be needed. */
export const UNUSED_MS = 90 * 86_400_000;
/** Owners are warned this long before a key expires, or a fifth of its life when that is less. */
export const EXPIRES_SOON_MS = 14 * 86_400_000;

export const KEY_CONCERNS = ['unused', 'expires_soon'] as const;
export type KeyConcern = (typeof KEY_CONCERNS)[number];

/** What the owner should know about a key; null when there is nothing, or it can no longer be used. */
export function keyConcern(key: ApiKey, nowMs: number): KeyConcern | null {
  if (!isUsable(key, nowMs)) return null;
  if (key.expiresAt !== null) {
    const soonMs = Math.min(EXPIRES_SOON_MS, (key.expiresAt - key.createdAt) / 5);
    if (key.expiresAt - nowMs <= soonMs) return 'expires_soon';
  }
  return nowMs - (key.lastUsedAt ?? key.watchedFrom) >= UNUSED_MS ? 'unused' : null;
}

/** Whether scopes include one: `admin` implies every scope of the team, `operator` implies all. */
export function allows(scopes: readonly Scope[], needed: Scope): boolean {
  if (scopes.includes(needed) || scopes.includes('operator')) return true;
  return needed !== 'operator' && scopes.includes('admin');
}

/** A team's slug: what may stand as a folder name and in an environment variable. */
export function isTeamSlug(text: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,62}$/.test(text);
}

const MINUTE_MS = 60_000;

/** A session ends after this long without a request. */
export const SESSION_MS = 12 * 60 * MINUTE_MS;
/** A session is renewed only after this long, so that not every request writes. */
export const RENEW_AFTER_MS = 5 * MINUTE_MS;
/** A link can be followed once, within this time. */
export const LINK_MS = 30 * MINUTE_MS;
/** A further one ends the oldest: a script that signs in again and again must not fill the table. */
export const MAX_SESSIONS_OF_KEY = 100;

/** Somebody who is signed in, with what a key may do and for as long as it may be used. Times in epoch milliseconds. */
export interface Session {
  teamId: string;
  keyId: string;
  createdAt: number;
  expiresAt: number;
}

/** Whether a session is due to be renewed. */
export function isToRenew({ expiresAt }: Session, nowMs: number): boolean {
  return expiresAt - nowMs <= SESSION_MS - RENEW_AFTER_MS;
}
