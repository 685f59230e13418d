/** Sessions of the dashboard, and the links that begin one: what they are and how long they last. */

const MINUTE_MS = 60_000;

/** A session ends when nothing was asked in it for so long. */
export const SESSION_MS = 12 * 60 * MINUTE_MS;
/** A session is prolonged only when this much of it is gone: not with every request. */
export const RENEW_AFTER_MS = 5 * MINUTE_MS;
/** A link can be followed, once, for so long. */
export const LINK_MS = 30 * MINUTE_MS;
/** More of one key end the oldest: a script that signs in again and again must not fill the table. */
export const MAX_SESSIONS_OF_KEY = 100;

/** Somebody who is signed in, with what a key may do and for as long as it may be used. Times in epoch milliseconds. */
export interface Session {
  teamId: string;
  keyId: string;
  createdAt: number;
  expiresAt: number;
}

/** Whether a session is so far gone that it is to be prolonged. */
export function isToRenew({ expiresAt }: Session, nowMs: number): boolean {
  return expiresAt - nowMs <= SESSION_MS - RENEW_AFTER_MS;
}
