/** Endpoints that misbehave, real delivery attempts to them, and checks of the attempts. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { parseAllowNetworks } from '../../../src/net/address-policy.ts';
import { createGuardedDispatcher } from '../../../src/net/dispatcher.ts';
import { destinationOf } from '../../../src/webhooks/destination.ts';
import { type Sent, sendAttempt } from '../../../src/webhooks/send.ts';
import type { Certificate } from '../net/certificates.ts';

export const MIB = 1024 * 1024;
const { privateKey } = generateKeyPairSync('ed25519');
const secret = randomBytes(32);
const dispatcher = createGuardedDispatcher({
  policy: parseAllowNetworks('127.0.0.1'),
  resolver: { resolve: async () => ['127.0.0.1'] },
  connectMs: 2_000,
});
const servers: Server[] = [];
const sockets = new Set<Socket>();

/** Call this after the tests of the file. */
export async function stopEndpoints(): Promise<void> {
  for (const server of servers) server.close();
  for (const socket of sockets) socket.destroy();
  await dispatcher.destroy();
}

async function listen(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Starts an endpoint that calls `handle` with each socket and the data received on it. Returns its URL. */
export async function endpoint(handle: (socket: Socket, text: string) => void): Promise<string> {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => handle(socket, bytes.toString('latin1')));
  });
  return `http://127.0.0.1:${await listen(server)}/hook`;
}

export async function tlsEndpoint(certificate: Certificate): Promise<number> {
  const server = createTlsServer(certificate, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  });
  server.on('tlsClientError', () => undefined);
  return listen(server);
}

export function send(url: string, timeoutMs = 300, signal?: AbortSignal): Promise<Sent> {
  return sendAttempt(
    { dispatcher, now: Date.now },
    {
      to: destinationOf({ url, headers: {}, userAgent: 'flowhook/test' }),
      keys: { secrets: [secret], privateKey },
      timeoutMs,
      queuedMs: 0,
      messageId: 'evt_1',
      eventType: 'workflow_finished',
      attempt: 1,
      body: '{"type":"workflow_finished"}',
      ...(signal === undefined ? {} : { signal }),
    },
  );
}

/** Writes repeatedly while the socket is open, as fast as possible or every few milliseconds. */
export function keepWriting(socket: Socket, chunk: string | Buffer, everyMs = 0): void {
  const again = () => {
    if (socket.destroyed) return;
    if (everyMs > 0) setTimeout(() => socket.write(chunk, again), everyMs);
    else socket.write(chunk, () => setImmediate(again));
  };
  again();
}

interface Expected {
  outcome: string;
  status?: number | null;
  error: RegExp | null;
  response?: string | null;
  withinMs?: number;
}

/** Checks the outcome of an attempt, its duration, and its peak memory use. */
export async function expectOutcome(sending: Promise<Sent>, expected: Expected): Promise<Sent> {
  let most = 0;
  const before = process.memoryUsage().rss;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss - before);
  }, 10);
  const sent = await sending.finally(() => clearInterval(watch));
  const { outcome, status, error, response, durationMs } = sent.attempt;
  assert.equal(outcome, expected.outcome, error ?? 'no error');
  if (expected.status !== undefined) assert.equal(status, expected.status);
  if (expected.error === null) assert.equal(error, null);
  else assert.match(error ?? '', expected.error);
  if (expected.response !== undefined) assert.equal(response, expected.response);
  assert.ok((error ?? '').length <= 400);
  assert.ok(durationMs <= (expected.withinMs ?? 1_500), `took ${durationMs} ms`);
  assert.ok(most < 96 * MIB, `took ${Math.round(most / MIB)} MiB of memory`);
  return sent;
}
