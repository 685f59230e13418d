/**
 * A receiver that believes only what Flowhook has signed, and does nothing twice. Needs Node alone.
 *
 *     node receiver.mts --port 9000 --secret whsec_… [--key whpk_…]
 *
 * `--secret` is the webhook's own (`flowhook webhooks secret`); give it twice while you replace it. `--key` is a
 * public key of your team, from `/.well-known/webhook-signing-keys/{teamId}`; with it no secret has to be shared.
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

/** A message is only as old as it says; both clocks may differ a little. */
const TOLERANCE_S = 5 * 60;
const MAX_BODY_BYTES = 256 * 1024;

/**
 * Says why a message is not to be trusted, or nothing when it is.
 *
 * @param body the bytes as they came: parsed and written anew they are others, and the signature does not match
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
  if (!/^\d{1,12}$/.test(timestamp)) return 'the timestamp is no number of seconds';
  if (Math.abs(nowS - Number(timestamp)) > TOLERANCE_S) return 'the timestamp is too old or too new';

  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  // Several signatures stand side by side: of the old and the new secret, and of the public key.
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
 * Ids that were taken. An event keeps its id however often it is sent, so that this stops replays by others as well
 * as a second delivery of what was received but not acknowledged. A real receiver keeps them in its database, in
 * the same transaction as what it does with the event.
 */
export class SeenIds {
  static readonly MAX = 100_000;
  readonly #ids = new Set<string>();

  /** False when the id was there already. The oldest is forgotten when there are too many. */
  take(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (oldest !== undefined && this.#ids.size > SeenIds.MAX) this.#ids.delete(oldest);
    return true;
  }

  /** The work failed: let the next attempt through. */
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
      // Acknowledged, or it would come again and again.
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

/** Your own work goes here. Answer quickly, and do what takes long afterwards. */
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
