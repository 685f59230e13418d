/** Signatures of Standard Webhooks 1.0: `v1` (HMAC-SHA256) and `v1a` (ed25519). */
import { createHmac, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';

/**
 * In the thread pool: an ed25519 signature takes 38 µs, of which 6 are left on the event loop. An HMAC takes 3, which
 * is less than the way there and back.
 */
const signWith = promisify(sign) as (algorithm: null, data: Uint8Array, key: KeyObject) => Promise<Buffer>;

/** What is signed: together with the keys it gives the three headers of the standard. */
export interface Signable {
  /** The event's id: the same for every attempt and every receiver. Without dots. */
  id: string;
  /** Seconds since 1970, of this attempt. */
  timestamp: number;
  /** The exact text that is sent. */
  body: string;
}

/**
 * The headers that prove who sent a message. Every signature is over `id.timestamp.body`.
 *
 * @param keys `secrets`: the bytes behind `whsec_`, shared with the receiver, newest first: while a secret is being
 *   replaced both sign, so that a receiver may change over when it likes; `privateKey`: the team's ed25519 key,
 *   whose public half anybody can fetch; null: there is no such signature
 */
export async function signatureHeaders(
  message: Signable,
  keys: { secrets: readonly Uint8Array[]; privateKey: KeyObject | null },
): Promise<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const content = Buffer.from(`${message.id}.${message.timestamp}.${message.body}`, 'utf8');
  const v1 = keys.secrets.map((key) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`);
  const v1a =
    keys.privateKey === null
      ? []
      : [`v1a,${(await signWith(null, content, keys.privateKey)).toString('base64')}`];
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': [...v1, ...v1a].join(' '),
  };
}
