/** Signatures of Standard Webhooks 1.0: `v1` (HMAC-SHA256) and `v1a` (ed25519). */
import { createHmac, type KeyObject, sign } from 'node:crypto';

/** What is signed: together with the keys it gives the three headers of the standard. */
export interface Signable {
  /** The event's id: the same for every attempt and every receiver. Without dots. */
  id: string;
  /** Seconds since 1970, of this attempt. */
  timestamp: number;
  /** The exact text that is sent. */
  body: string;
}

export interface SigningKeys {
  /**
   * The bytes behind `whsec_`, shared with the receiver, newest first: while a secret is being replaced both sign, so
   * that a receiver may change over when it likes.
   */
  secrets: readonly Uint8Array[];
  /** The team's ed25519 key, whose public half anybody can fetch; null: there is no such signature. */
  privateKey: KeyObject | null;
}

/** The headers that prove who sent a message. */
export async function signatureHeaders(
  message: Signable,
  keys: SigningKeys,
): Promise<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': signatures(message, keys),
  };
}

/**
 * The value of `webhook-signature`: every signature is over `id.timestamp.body`. Takes some 35 µs of processor time,
 * of which all but 2 are ed25519: see `signer.ts` for where many are to be made.
 *
 * @param ed25519 the raw signature of a content; for who has made it before
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
