/** Signatures of Standard Webhooks 1.0: `v1` (HMAC-SHA256) and `v1a` (ed25519). */
import { createHmac, type KeyObject, sign } from 'node:crypto';

/** What is signed. */
export interface Signable {
  /** The event's id: the same for every attempt and every receiver. Contains no dots. */
  id: string;
  /** Seconds since 1970, at the time of this attempt. */
  timestamp: number;
  /** The exact text that is sent. */
  body: string;
}

export interface SigningKeys {
  /**
   * The webhook's secrets (the bytes encoded after `whsec_`), newest first. While a secret is being rotated both sign, so
   * that the receiver can switch at any time.
   */
  secrets: readonly Uint8Array[];
  /** The team's ed25519 key, whose public key is published; null makes no `v1a` signature. */
  privateKey: KeyObject | null;
}

/** The three signature headers of Standard Webhooks. */
export function signatureHeaders(
  message: Signable,
  keys: SigningKeys,
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': signatures(message, keys),
  };
}

/**
 * The value of `webhook-signature`: each signature is over `id.timestamp.body`. It takes some 35 µs of processor time, 33
 * of them for ed25519; `signer.ts` makes many in a thread.
 *
 * @param ed25519 signs the content; a caller may pass a function that caches
 */
export function signatures(
  { id, timestamp, body }: Signable,
  { secrets, privateKey }: SigningKeys,
  ed25519: (content: Buffer, key: KeyObject) => Buffer = (content, key) => sign(null, content, key),
): string {
  const content = Buffer.from(`${id}.${timestamp}.${body}`, 'utf8');
  const made = secrets.map((key) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`);
  if (privateKey !== null) made.push(`v1a,${ed25519(content, privateKey).toString('base64')}`);
  return made.join(' ');
}
