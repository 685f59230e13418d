/**
 * A webhook receiver that accepts only requests signed by Flowhook, and handles each event once. It needs only Node.
 *
 *     node receiver.mts --port 9000 --secret whsec_… [--key whpk_…]
 *
 * `--secret` is the secret of the webhook (`flowhook webhooks secret`); give it twice during a rotation. `--key` is a
 * public key of your team, from `/.well-known/webhook-signing-keys/{teamId}`; it works without a shared secret.
 */
import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';

export interface Keys {
  /** `whsec_` and base64. */
  secrets: readonly string[];
  /** `whpk_` and base64. */
  publicKeys: readonly string[];
}

/** Limits the age of a message, and the difference between the clocks of sender and receiver. */
const TOLERANCE_S = 5 * 60;
const MAX_BODY_BYTES = 256 * 1024;

/**
 * Verifies a message.
 *
 * @param message.body the received bytes: JSON that was parsed and serialized again does not match the signature
 * @returns why the message cannot be trusted; undefined if it can
 */
export function mistakeIn(
  message: { headers: IncomingHttpHeaders; body: Buffer },
  keys: Keys,
  nowS = Date.now() / 1000,
): string | undefined {
  const { headers, body } = message;
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const signatures = headers['webhook-signature'];
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') {
    return 'a webhook- header is missing';
  }
  if (!/^\d{1,12}$/.test(timestamp)) return 'the timestamp is not a number of seconds';
  if (Math.abs(nowS - Number(timestamp)) > TOLERANCE_S) return 'the timestamp is too old or too new';

  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  // There may be several signatures: with the old and the new secret, and with the private key of the team.
  const matches = signatures.split(' ').some((signature) => {
    const [version, base64 = ''] = signature.split(',', 2);
    const given = Buffer.from(base64, 'base64');
    if (version === 'v1') return keys.secrets.some((secret) => isHmac(signed, secret, given));
    if (version === 'v1a') return keys.publicKeys.some((key) => verify(null, signed, publicKey(key), given));
    return false;
  });
  return matches ? undefined : 'no signature matches';
}

function isHmac(signed: Buffer, secret: string, given: Buffer): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key).update(signed).digest();
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function publicKey(text: string): ReturnType<typeof createPublicKey> {
  const x = Buffer.from(text.replace(/^whpk_/, ''), 'base64').toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

/**
 * The ids of events that were handled. An event keeps its id in all deliveries, so this stops replays by others as well
 * as retries of events that were handled but not acknowledged. A real receiver stores the ids in its database, in the
 * same transaction as its work.
 */
export class SeenIds {
  static readonly MAX = 100_000;
  readonly #ids = new Set<string>();

  /** Adds an id, and forgets the oldest one if there are too many. @returns false if the id is already known */
  take(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (oldest !== undefined && this.#ids.size > SeenIds.MAX) this.#ids.delete(oldest);
    return true;
  }

  /** Forgets an id whose event could not be handled, so that the next attempt is handled. */
  giveBack(id: string): void {
    this.#ids.delete(id);
  }
}

if (import.meta.main) main();

function main(): void {
  const { values: options } = parseArgs({
    options: {
      port: { type: 'string', default: '9000' },
      secret: { type: 'string', multiple: true, default: [] },
      key: { type: 'string', multiple: true, default: [] },
    },
  });
  const keys: Keys = { secrets: options.secret, publicKeys: options.key };
  const seen = new SeenIds();

  const server = createServer(async (request, response) => {
    const body = await read(request).catch(() => undefined);
    if (body === undefined) return response.writeHead(413).end();
    const mistake = mistakeIn({ headers: request.headers, body }, keys);
    if (mistake !== undefined) {
      console.log(`refused: ${mistake}`);
      return response.writeHead(401).end(mistake);
    }
    const id = String(request.headers['webhook-id']);
    if (!seen.take(id)) {
      // Acknowledged nevertheless, because otherwise it would be sent again.
      console.log(`again ${id}`);
      return response.writeHead(204).end();
    }
    try {
      handle(id, body);
      response.writeHead(204).end();
    } catch (error) {
      seen.giveBack(id);
      console.log(`failed ${id}: ${error}`);
      response.writeHead(500).end();
    }
  });
  server.listen(Number(options.port), '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
}

/** Your own work goes here. Respond quickly, and do long work afterwards. */
function handle(id: string, body: Buffer): void {
  const event = JSON.parse(body.toString()) as { type: string; workflowId?: string };
  console.log(`verified ${id} ${event.type} ${event.workflowId ?? ''}`.trim());
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Error('too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
