/** Sessions of the dashboard, and the links that begin one: what they are and how long they last. */

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
