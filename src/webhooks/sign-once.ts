/**
 * Signatures by ed25519 that are made once for all webhooks of a team: an event that many are subscribed to goes to all
 * of them with the same id, timestamp and body, and ed25519 gives one content one signature (RFC 8032). The content is
 * what is compared, for an erasure may write the body of an event anew within the second; only its digest is kept, so
 * that an erasure need not look for the old one here.
 */
import { hash, type KeyObject, sign } from 'node:crypto';

const MAX_REMEMBERED = 256;

/** Answers a function that signs, and remembers what it has signed last. */
export function createSignOnce(
  signed: (content: Buffer, key: KeyObject) => Buffer = (content, key) => sign(null, content, key),
): (content: Buffer, key: KeyObject) => Buffer {
  const remembered = new Map<string, { key: KeyObject; signature: Buffer }>();
  return (content, key) => {
    const digest = hash('sha256', content, 'base64');
    const known = remembered.get(digest);
    if (known?.key.equals(key)) return known.signature;
    const signature = signed(content, key);
    const [oldest] = remembered.keys();
    if (oldest !== undefined && remembered.size >= MAX_REMEMBERED) remembered.delete(oldest);
    remembered.set(digest, { key, signature });
    return signature;
  };
}
