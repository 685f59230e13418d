#!/usr/bin/env node
/**
 * A webhook receiver for trying things out: it checks the signatures (Standard Webhooks 1.0) and prints what arrives. To
 * build your own, start from `verify/receiver.mts`, which also handles events that arrive twice.
 *
 *     node examples/receiver.mts --port 9000 --service http://127.0.0.1:8080
 *
 * It checks the `v1a` signature with the public keys that the service publishes, and with `--secret whsec_…` also the
 * `v1` signature. It needs only Node.
 */
import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '9000' },
    /** The service that publishes the public keys. */
    service: { type: 'string', default: 'http://127.0.0.1:8080' },
    /** The id of the team whose keys to use, if that is not `default`. */
    team: { type: 'string' },
    secret: { type: 'string' },
    /** Prints JSON lines instead of readable ones. */
    json: { type: 'boolean', default: false },
  },
});

/** Messages outside of this tolerance are refused, so that a recorded message cannot be replayed later. */
const TOLERANCE_S = 5 * 60;
const MAX_BODY_BYTES = 1024 * 1024;
/** Minimum time between two fetches of the keys, however many unknown signatures arrive. */
const KEYS_FRESH_MS = 10_000;

let keys: KeyObject[] = [];
let keysAskedAt = 0;
/** The fetch in progress, which messages that arrive together share. */
let asking: Promise<void> | undefined;

const server = createServer(async (request, response) => {
  const body = await read(request).catch(() => undefined);
  if (body === undefined) return response.writeHead(413).end();
  const mistake = await check(request, body);
  print(request, body, mistake);
  response.writeHead(mistake === undefined ? 204 : 401).end(mistake);
});
server.on('error', ({ message }) => {
  process.stderr.write(`The receiver cannot listen: ${message}. Choose another port with --port\n`);
  process.exitCode = 1;
});
// The first request for the keys creates them, and only deliveries after that are signed with them.
await freshKeys();
server.listen(Number(options.port), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`receiver listening on http://127.0.0.1:${port}\n`);
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.close();
    server.closeAllConnections();
  });
}

/** @returns why a message cannot be trusted; undefined if it can */
async function check(request: IncomingMessage, body: Buffer): Promise<string | undefined> {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) => {
    const value = request.headers[`webhook-${name}`];
    return typeof value === 'string' ? value : '';
  });
  if (!id || !timestamp || !signatures) return 'a webhook- header is missing';
  const ageS = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!(ageS <= TOLERANCE_S)) return 'the timestamp is too old or too new';

  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const given = signatures.split(' ').map((one) => one.split(',', 2) as [string, string]);
  const some = (version: string, holds: (signature: Buffer) => boolean) =>
    given.some(([is, text]) => is === version && holds(Buffer.from(text ?? '', 'base64')));

  if (options.secret !== undefined) {
    const secret = Buffer.from(options.secret.replace(/^whsec_/, ''), 'base64');
    const expected = createHmac('sha256', secret).update(signed).digest();
    const holds = some('v1', (one) => one.length === expected.length && timingSafeEqual(one, expected));
    if (!holds) return 'the v1 signature does not match the secret';
  }
  const holdsV1a = () => some('v1a', (one) => keys.some((key) => verify(null, signed, key, one)));
  if (holdsV1a()) return undefined;
  await freshKeys();
  if (holdsV1a()) return undefined;
  // If the keys cannot be fetched, the check with the secret is enough.
  if (keys.length === 0 && options.secret !== undefined) return undefined;
  return keys.length === 0
    ? 'the public keys could not be fetched'
    : 'the v1a signature matches no public key';
}

function freshKeys(): Promise<void> {
  asking ??= fetchKeys().finally(() => {
    asking = undefined;
  });
  return asking;
}

async function fetchKeys(): Promise<void> {
  if (Date.now() - keysAskedAt < KEYS_FRESH_MS) return;
  keysAskedAt = Date.now();
  const path = `/.well-known/webhook-signing-keys${options.team === undefined ? '' : `/${options.team}`}`;
  try {
    const response = await fetch(new URL(path, options.service), { signal: AbortSignal.timeout(5_000) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const found = (await response.json()) as { keys: { type: string; key: string }[] };
    keys = found.keys.filter(({ type }) => type === 'ed25519').map(({ key }) => publicKey(key));
  } catch (error) {
    // Fetch again at the next message: the service may just be starting.
    keysAskedAt = 0;
    process.stderr.write(`The public keys of ${options.service} could not be fetched: ${error}\n`);
  }
}

/** `whpk_` and 32 bytes as base64. */
function publicKey(text: string): KeyObject {
  const x = Buffer.from(text.replace(/^whpk_/, ''), 'base64').toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
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

function print(request: IncomingMessage, body: Buffer, mistake: string | undefined): void {
  const at = new Date().toISOString();
  if (mistake !== undefined) {
    const line = options.json
      ? JSON.stringify({ at, verified: false, error: mistake })
      : `${at} REFUSED ${mistake}`;
    process.stdout.write(`${line}\n`);
    return;
  }
  const attempt = Number(request.headers['webhook-attempt'] ?? 1);
  const event = parse(body);
  if (options.json) {
    // With the headers and the exact body, callers can verify the signature themselves.
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(([name]) => name.startsWith('webhook-')),
    );
    const line = { at, verified: true, attempt, event, headers, body: body.toString() };
    process.stdout.write(`${JSON.stringify(line)}\n`);
    return;
  }
  const { records, version, error, matched, differences } = event.data ?? {};
  const counts = records && `+${records.added} ~${records.changed} -${records.removed} of ${records.total}`;
  const rest = [
    event.workflowId,
    event.jobId,
    version !== undefined && `version ${version}`,
    counts,
    matched !== undefined && `${matched} matched`,
    Array.isArray(differences) && matched !== undefined && differences.map(({ id }) => id).join(', '),
    error,
    attempt > 1 && `attempt ${attempt}`,
  ];
  // A template may have made a body of any form.
  const words = [at, 'verified', event.type ?? body.toString(), ...rest.filter(Boolean)];
  process.stdout.write(`${words.join(' ').replaceAll('\n', ' ')}\n`);
}

interface Event {
  type?: string;
  workflowId?: string;
  jobId?: string;
  data?: {
    version?: number;
    error?: string;
    /** Only if the webhook has a filter on records. */
    matched?: number;
    differences?: { id: string }[];
    records?: { total: number; added: number; changed: number; removed: number };
  };
}

function parse(body: Buffer): Event {
  try {
    return (JSON.parse(body.toString()) ?? {}) as Event;
  } catch {
    return { type: '(not JSON)' };
  }
}
