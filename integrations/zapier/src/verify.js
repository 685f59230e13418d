/** Verifies that a request was signed by the team: Standard Webhooks, `v1a` (ed25519). */
import { createPublicKey, verify as verifySignature } from 'node:crypto';

/** The service sends few, and each one costs a check. */
const MAX_SIGNATURES = 16;
/** The DER prefix of the 32 bytes of an ed25519 key (RFC 8410). */
const KEY_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * The signature is asymmetric, so that Zapier stores nothing that could sign for the team, and a key needs no scope to read
 * secrets. The age is not checked, because Zapier itself delays requests, for days if a Zap is throttled or replayed.
 * Repeated events are recognized by their id.
 *
 * @param {{ content: string, headers: Record<string, string> }} request as it arrived
 * @param {readonly string[]} publicKeys `whpk_…`
 */
export function isSigned({ content, headers }, publicKeys) {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    header(headers, `webhook-${name}`),
  );
  if (!id || !timestamp || !signatures) return false;
  const signed = Buffer.from(`${id}.${timestamp}.${content}`);
  const keys = publicKeys.map((key) => Buffer.from(key.replace(/^whpk_/, ''), 'base64'));
  return signatures
    .split(' ')
    .slice(0, MAX_SIGNATURES)
    .filter((signature) => signature.startsWith('v1a,'))
    .map((signature) => Buffer.from(signature.slice(4), 'base64'))
    .some((signature) =>
      keys.some((key) => key.length === 32 && signature.length === 64 && matches(key, signed, signature)),
    );
}

/**
 * Zapier passes a header `webhook-id` as `Http-Webhook-Id`.
 *
 * @param {Record<string, string>} headers
 * @param {string} name in lower case
 */
export function header(headers, name) {
  const key = Object.keys(headers).find((one) => one.toLowerCase().replace(/^http-/, '') === name);
  return key === undefined ? undefined : headers[key];
}

/**
 * @param {Buffer} key
 * @param {Buffer} signed
 * @param {Buffer} signature
 */
function matches(key, signed, signature) {
  const publicKey = createPublicKey({ key: Buffer.concat([KEY_PREFIX, key]), format: 'der', type: 'spki' });
  return verifySignature(null, signed, publicKey, signature);
}
