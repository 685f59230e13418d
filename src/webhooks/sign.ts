/** Signatures of Standard Webhooks 1.0: `v1` (HMAC-SHA256) and `v1a` (ed25519). */
import { createHmac, type KeyObject, sign as signWith } from 'node:crypto';

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
 * The headers that prove who sent a message. Both signatures are over `id.timestamp.body`.
 *
 * @param keys `secret`: the bytes behind `whsec_`, shared with the receiver; `privateKey`: the team's ed25519
 *   key, whose public half anybody can fetch
 */
export function signatureHeaders(
  message: Signable,
  keys: { secret: Uint8Array; privateKey: KeyObject },
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const content = Buffer.from(`${message.id}.${message.timestamp}.${message.body}`, 'utf8');
  const v1 = createHmac('sha256', keys.secret).update(content).digest('base64');
  const v1a = signWith(null, content, keys.privateKey).toString('base64');
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': `v1,${v1} v1a,${v1a}`,
  };
}
