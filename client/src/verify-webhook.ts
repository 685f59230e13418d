/** Verifies webhook requests: Standard Webhooks 1.0, `v1` (HMAC-SHA256) and `v1a` (ed25519). */
import type { FlowhookEvent } from './resources.ts';

/** The request does not come from the service, was changed, or is a replayed recording: return 401 and ignore it. */
export class NotVerified extends Error {
  override readonly name = 'NotVerified';
}

const TOLERANCE_S = 300;
/** Maximum number of signatures: more than the service ever sends. Each one costs a verification. */
const MAX_SIGNATURES = 16;

/**
 * ```ts
 * const event = await verifyWebhook(await request.text(), request.headers, { secrets: ['whsec_…'] });
 * if (event.type === 'workflow_finished') console.log(event.data.records.added);
 * ```
 *
 * One signature by one of the secrets or keys is enough. An event may arrive more than once: detect duplicates by
 * `event.id`.
 *
 * @param body the raw body, before any parser
 * @param headers `webhook-id`, `webhook-timestamp` and `webhook-signature`,  as `Headers` or as an object like Node's
 * @param trust.secrets `whsec_…`, from `webhooks.secret`
 * @param trust.publicKeys `whpk_…`, from `signingKeys`; the runtime must support Ed25519 (Node, Deno, Bun, Safari
 *   17, Firefox 129, Chrome 137)
 * @param trust.toleranceS how many seconds the timestamp may be in the past or future (default: 300)
 * @param trust.nowMs the current time in epoch milliseconds (default: the clock)
 * @throws NotVerified with the reason
 */
export async function verifyWebhook(
  body: string | Uint8Array | ArrayBuffer,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  trust: {
    secrets?: readonly string[];
    publicKeys?: readonly string[];
    toleranceS?: number;
    nowMs?: number;
  },
): Promise<FlowhookEvent> {
  const { secrets = [], publicKeys = [], toleranceS = TOLERANCE_S, nowMs = Date.now() } = trust;
  if (secrets.length + publicKeys.length === 0) {
    throw new TypeError(
      'Pass `secrets` or `publicKeys` to verifyWebhook: without them nothing can be verified',
    );
  }
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    header(headers, `webhook-${name}`),
  );
  if (!id || !timestamp || !signatures) throw new NotVerified('a webhook- header is missing');
  if (!/^\d{1,12}$/.test(timestamp)) throw new NotVerified('the timestamp is no number of seconds');
  const ageS = nowMs / 1_000 - Number(timestamp);
  if (Math.abs(ageS) > toleranceS) {
    throw new NotVerified(ageS > 0 ? 'the timestamp is too old' : 'the timestamp is too far ahead');
  }
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body);
  const signed = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  for (const one of signatures.split(' ').slice(0, MAX_SIGNATURES)) {
    const [version, text = ''] = one.split(',', 2);
    const [given, algorithm] =
      version === 'v1' ? [secrets, hmac] : version === 'v1a' ? [publicKeys, ed25519] : [[], hmac];
    const signature = given.length === 0 ? undefined : base64(text);
    if (signature === undefined) continue;
    for (const key of given) {
      if (await algorithm(key, signature, signed)) return JSON.parse(new TextDecoder().decode(bytes));
    }
  }
  throw new NotVerified('no signature matches');
}

/** Web Crypto compares in constant time. */
async function hmac(secret: string, signature: Bytes, signed: Bytes): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', keyBytes(secret, 'whsec_'), algorithm, false, ['verify']);
  return crypto.subtle.verify('HMAC', key, signature, signed);
}

async function ed25519(publicKey: string, signature: Bytes, signed: Bytes): Promise<boolean> {
  if (signature.length !== 64) return false;
  const bytes = keyBytes(publicKey, 'whpk_');
  const key = await crypto.subtle.importKey('raw', bytes, 'Ed25519', false, ['verify']);
  return crypto.subtle.verify('Ed25519', key, signature, signed);
}

type Bytes = Uint8Array<ArrayBuffer>;

/** @throws TypeError for a malformed key, because a mistake of the receiver must not look like a wrong signature */
function keyBytes(text: string, prefix: string): Bytes {
  const bytes = base64(text.startsWith(prefix) ? text.slice(prefix.length) : text);
  if (bytes === undefined || bytes.length === 0)
    throw new TypeError(`A key must be ${prefix} followed by base64`);
  return bytes;
}

function base64(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function concat(head: Uint8Array, rest: Uint8Array): Bytes {
  const all = new Uint8Array(head.length + rest.length);
  all.set(head);
  all.set(rest, head.length);
  return all;
}

function header(headers: Parameters<typeof verifyWebhook>[1], name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const key = Object.keys(headers).find((one) => one.toLowerCase() === name);
  const value = key === undefined ? '' : headers[key];
  // A repeated header counts as missing, because other software might use the other value.
  return typeof value === 'string' ? value : '';
}
