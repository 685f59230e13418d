/** Signatures of Standard Webhooks 1.0: `v1` (HMAC-SHA256) and `v1a` (ed25519). */
import { createHmac, hash, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';

const MAX_CACHED = 256;

/** The signed content. */
interface Signable {
  /** The id of the event, which is the same for every attempt and every receiver. Contains no dots. */
  id: string;
  /** Time of this attempt, in seconds since 1970. */
  timestamp: number;
  /** The exact text of the request body. */
  body: string;
}

export interface SigningKeys {
  /**
   * The webhook's secrets (the bytes encoded after `whsec_`), newest first. During a rotation there are two secrets,
   * and both sign, so that the receiver can switch at any time.
   */
  secrets: readonly Uint8Array[];
  /** The team's ed25519 key, whose public key is published. If null, there is no `v1a` signature. */
  privateKey: KeyObject | null;
}

/** The three signature headers of Standard Webhooks. */
export async function signatureHeaders(
  message: Signable,
  keys: SigningKeys,
): Promise<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': await signatures(message, keys),
  };
}

/**
 * The value of `webhook-signature`. Each signature covers `id.timestamp.body`. An ed25519 signature takes 33 µs in
 * Node's thread pool, and 10 to 20 µs on the event loop.
 */
async function signatures(
  { id, timestamp, body }: Signable,
  { secrets, privateKey }: SigningKeys,
): Promise<string> {
  const content = Buffer.from(`${id}.${timestamp}.${body}`, 'utf8');
  const made = secrets.map((key) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`);
  if (privateKey !== null) made.push(`v1a,${(await ed25519(content, privateKey)).toString('base64')}`);
  return made.join(' ');
}

const inThreadPool = promisify(sign) as (algorithm: null, content: Buffer, key: KeyObject) => Promise<Buffer>;

/**
 * Returns a function that signs with ed25519 and caches the last 256 signatures. All subscribers of an event get the
 * same id, timestamp and body, and therefore the same signature, because ed25519 signatures are deterministic (RFC
 * 8032). The cache key is a digest of the signed content, for two reasons: an erasure may rewrite an event within the
 * same second, and the cache then contains nothing that an erasure would have to find.
 */
export function createSignatureCache(
  make = (content: Buffer, key: KeyObject): Promise<Buffer> => inThreadPool(null, content, key),
): (content: Buffer, key: KeyObject) => Promise<Buffer> {
  const cached = new Map<string, { key: KeyObject; signature: Promise<Buffer> }>();
  return (content, key) => {
    const digest = hash('sha256', content, 'base64');
    const known = cached.get(digest);
    if (known?.key.equals(key)) return known.signature;
    const signature = make(content, key);
    const [oldest] = cached.keys();
    if (oldest !== undefined && cached.size >= MAX_CACHED) cached.delete(oldest);
    cached.set(digest, { key, signature });
    return signature;
  };
}

const ed25519 = createSignatureCache();
