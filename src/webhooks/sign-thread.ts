/**
 * The signing thread: signs the messages of one batch after the other.
 *
 * An event with many subscribers goes to all of them with the same id, timestamp and body, so their ed25519 signatures
 * are the same (RFC 8032: signatures are deterministic) and made once. The cache is keyed by a digest of the content,
 * because an erasure may rewrite an event within the second, and so that it holds no content an erasure would have to
 * find.
 */
import { hash, type KeyObject, sign } from 'node:crypto';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { type Signable, type SigningKeys, signatures } from './sign.ts';

const MAX_CACHED = 256;

/** A batch of messages; each refers to its keys by index, because many messages have the same keys. */
export interface ToSign {
  keys: readonly SigningKeys[];
  messages: readonly (Signable & { keys: number })[];
}

/** The `webhook-signature` values, in the order of the messages. */
export type Signed = string[];

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  const ed25519 = createSignatureCache();
  port.on('message', ({ keys, messages }: ToSign) => {
    const signed: Signed = messages.map((message) =>
      signatures(message, keys[message.keys] as SigningKeys, ed25519),
    );
    port.postMessage(signed);
  });
}

/** Returns a function that signs by ed25519, and caches the last 256 signatures. */
export function createSignatureCache(
  ed25519: (content: Buffer, key: KeyObject) => Buffer = (content, key) => sign(null, content, key),
): (content: Buffer, key: KeyObject) => Buffer {
  const cached = new Map<string, { key: KeyObject; signature: Buffer }>();
  return (content, key) => {
    const digest = hash('sha256', content, 'base64');
    const known = cached.get(digest);
    if (known?.key.equals(key)) return known.signature;
    const signature = ed25519(content, key);
    const [oldest] = cached.keys();
    if (oldest !== undefined && cached.size >= MAX_CACHED) cached.delete(oldest);
    cached.set(digest, { key, signature });
    return signature;
  };
}
