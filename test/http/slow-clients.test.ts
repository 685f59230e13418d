/**
 * Slow and greedy clients: other clients still get responses, and slow connections are closed in the end.
 * `SLOW_CLIENTS=2000` opens 2,000 idle connections and 500 that send a request byte by byte (default: 300 and 75).
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { startServerProcess } from '../support/server-process.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const IDLE = Number(process.env.SLOW_CLIENTS ?? 300);
const LORIS = Math.ceil(IDLE / 4);
const SLOW_BODIES = 20;
const STALLED_READERS = 10;
const KEY = 'test-key-of-the-default-team';
const HEAD = `host: a\r\nx-api-key: ${KEY}\r\n`;
const ME = `GET /v1/me HTTP/1.1\r\n${HEAD}\r\n`;
/** More data than the kernel buffers for a connection. */
const RECORDS = 40;
const RECORD_BYTES = 700_000;

interface Got {
  status: number;
  text: string;
}

let service: TestService;

before(async () => {
  service = await startService();
});
after(() => service.stop());

/** Sends a request on its own connection. Status 0: there was no response. */
function ask(url: string, { path = '/v1/me', from }: { path?: string; from?: string } = {}): Promise<Got> {
  return new Promise((resolve) => {
    const sent = httpRequest(url + path, {
      agent: false,
      headers: { 'x-api-key': KEY },
      ...(from === undefined ? {} : { localAddress: from }),
    });
    const lost = (error: Error) => resolve({ status: 0, text: String(error) });
    sent.on('error', lost);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', lost);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    sent.end();
  });
}

/** Opens a connection. Its errors are ignored. */
async function open(t: TestContext, url: string, from?: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({
    host: hostname,
    port: Number(port),
    ...(from === undefined ? {} : { localAddress: from }),
  });
  t.after(() => socket.destroy());
  await new Promise<void>((resolve) => {
    socket.once('connect', resolve);
    socket.on('error', () => resolve());
  });
  return socket;
}

function openMany(t: TestContext, url: string, count: number): Promise<Socket[]> {
  return Promise.all(Array.from({ length: count }, () => open(t, url)));
}

/** Resolves when the connection is closed or broken. */
function closed(socket: Socket): Promise<void> {
  socket.resume();
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });
}

/** Resolves with the first bytes; empty if the connection was closed before. */
function firstBytes(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    socket.once('close', () => resolve(''));
  });
}

/** Returns a function that sends the next byte of a text. */
function trickle(socket: Socket, text: string): () => void {
  let sent = 0;
  return () => {
    if (sent < text.length && socket.writable) socket.write(text[sent] ?? '');
    sent += 1;
  };
}

test('idle, slow and stalled clients do not affect other clients', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-slow-'));
  const files = join(directory, 'workflows', 'default');
  await mkdir(files, { recursive: true });
  await writeFile(join(files, 'large.yaml'), 'source: { type: push }\n');
  const server = await startServerProcess({
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
    // Long, so that the number of open connections does not depend on the speed of this machine.
    FLOWHOOK_HEADERS_TIMEOUT: '5m',
    FLOWHOOK_REQUEST_TIMEOUT: '10m',
    FLOWHOOK_KEEP_ALIVE_TIMEOUT: '10m',
  });
  t.after(async () => {
    await server.kill();
    await rm(directory, { recursive: true, force: true });
  });
  const { url } = server;
  const record = 'x'.repeat(RECORD_BYTES);
  const pushed = await fetch(`${url}/v1/workflows/large/push`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/x-ndjson' },
    body: Array.from({ length: RECORDS }, (_, id) => `${JSON.stringify({ id: `r${id}`, record })}\n`).join(
      '',
    ),
  });
  assert.equal(pushed.status, 200, await pushed.text());
  // The first read writes the cached body for the others.
  assert.equal((await ask(url, { path: '/v1/workflows/large/data' })).status, 200);
  const before = await residentMb(url);

  const unused = await openMany(t, url, Math.floor(IDLE / 2));
  const used = await openMany(t, url, Math.ceil(IDLE / 2));
  for (const socket of used) socket.write(ME);
  for (const socket of used) assert.match(await firstBytes(socket), /^HTTP\/1\.1 200 /);
  const loris = (await openMany(t, url, LORIS)).map((socket) =>
    trickle(socket, `GET /v1/me HTTP/1.1\r\n${'x: y\r\n'.repeat(2_000)}`),
  );
  const bodies = (await openMany(t, url, SLOW_BODIES)).map((socket) => {
    socket.write(`POST /v1/integrations/webhooks HTTP/1.1\r\n${HEAD}content-length: 9000\r\n\r\n`);
    return trickle(socket, 'x'.repeat(9_000));
  });
  const readers = await openMany(t, url, STALLED_READERS);
  for (const socket of readers) {
    socket.pause();
    socket.write(`GET /v1/workflows/large/data HTTP/1.1\r\n${HEAD}connection: close\r\n\r\n`);
  }

  const statuses: number[] = [];
  for (let round = 0; round < 25; round++) {
    for (const sendByte of [...loris, ...bodies]) sendByte();
    const responses = await Promise.all([
      ...Array.from({ length: 4 }, () => ask(url)),
      ask(url, { path: '/v1/workflows/large/data?limit=1' }),
    ]);
    statuses.push(...responses.map(({ status }) => status));
  }
  assert.deepEqual([...new Set(statuses)], [200]);
  const grown = (await residentMb(url)) - before;
  t.diagnostic(`${IDLE} idle, ${LORIS} slow: ${statuses.length} responses, server memory +${grown} MB`);
  // About 10 kB per connection. Stalled readers share one body.
  assert.ok(grown < 200 + IDLE / 20, `the server has grown by ${grown} MB`);
  const still = [...unused, ...used].filter(({ destroyed }) => !destroyed);
  assert.equal(still.length, IDLE, 'idle connections stay open');

  const sizes = await Promise.all(readers.map(readWhole));
  for (const size of sizes) assert.ok(size > RECORDS * RECORD_BYTES, `${size} bytes`);
});

async function residentMb(url: string): Promise<number> {
  const { text } = await ask(url, { path: '/v1/system' });
  const { memory } = JSON.parse(text) as { memory: { residentBytes: number } };
  return Math.round(memory.residentBytes / 1_048_576);
}

async function readWhole(socket: Socket): Promise<number> {
  let size = 0;
  socket.on('data', (chunk: Buffer) => {
    size += chunk.length;
  });
  await closed(socket);
  return size;
}

test('closes slow connections, and unused connections without a response', async (t) => {
  const hasty = await startService({
    settings: {
      FLOWHOOK_HEADERS_TIMEOUT: '1s',
      FLOWHOOK_REQUEST_TIMEOUT: '1s',
      FLOWHOOK_KEEP_ALIVE_TIMEOUT: '1s',
    },
  });
  t.after(() => hasty.stop());
  const unused = await openMany(t, hasty.url, 20);
  const used = await openMany(t, hasty.url, 20);
  for (const socket of used) socket.write(ME);
  const halfHeads = await openMany(t, hasty.url, 20);
  for (const socket of halfHeads) socket.write('GET /v1/me HTTP/1.1\r\nhost: a\r\n');
  const halfBodies = await openMany(t, hasty.url, 20);
  for (const socket of halfBodies) {
    socket.write(`POST /v1/integrations/webhooks HTTP/1.1\r\n${HEAD}content-length: 10\r\n\r\nhalf`);
  }
  const halfClosed = await openMany(t, hasty.url, 20);
  for (const socket of halfClosed) {
    socket.end(`POST /v1/integrations/webhooks HTTP/1.1\r\n${HEAD}content-length: 10\r\n\r\nhalf`);
  }
  const receivedByUnused = unused.map(firstBytes);
  const receivedByHalfHeads = halfHeads.map(firstBytes);
  await Promise.all([...unused, ...used, ...halfHeads, ...halfBodies, ...halfClosed].map(closed));
  for (const text of await Promise.all(receivedByUnused)) assert.equal(text, '');
  // Empty if this test was slower than its server.
  for (const text of await Promise.all(receivedByHalfHeads))
    assert.match(text, /^$|^HTTP\/1\.1 400 .*took too long/s);
});

test('limits pipelined requests per connection, and does not delay other clients', async (t) => {
  const reads = await openMany(t, service.url, 2);
  const doesNotRead = await openMany(t, service.url, 2);
  const ends: Promise<void>[] = [];
  for (const socket of reads) {
    ends.push(closed(socket));
    socket.write(ME.repeat(10_000));
  }
  for (const socket of doesNotRead) {
    socket.pause();
    ends.push(
      new Promise((resolve) => {
        socket.once('close', () => resolve());
      }),
    );
    socket.write(ME.repeat(10_000));
  }
  // While so many requests are refused, another one may get a 503 and is retried.
  for (let succeeded = 0; succeeded < 50; ) {
    const { status } = await ask(service.url);
    assert.ok(status === 200 || status === 503, `${status}`);
    if (status === 200) succeeded += 1;
  }
  await Promise.all(ends);
});

test('responds to ten pipelined requests in order', async (t) => {
  const socket = await open(t, service.url);
  const chunks: string[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk.toString()));
  const paths = Array.from({ length: 10 }, (_, n) => `/v1/jobs/job_${n}`);
  const asked = paths.map((path, n) => `GET ${path} HTTP/1.1\r\n${HEAD}x-request-id: number-${n}\r\n`);
  socket.write(`${asked.join('\r\n')}connection: close\r\n\r\n`);
  await closed(socket);
  const responses = chunks.join('');
  assert.equal(responses.match(/HTTP\/1\.1 404 /g)?.length, 10);
  const ids = [...responses.matchAll(/x-request-id: (\S+)/g)].map(([, id]) => id);
  assert.deepEqual(
    ids,
    [...paths.keys()].map((n) => `number-${n}`),
  );
});

test('accepts thousands of header lines up to 16 KiB, and drops none', async (t) => {
  const responseTo = async (line: string, count: number) => {
    const socket = await open(t, service.url);
    const first = firstBytes(socket);
    socket.write(`GET /v1/me HTTP/1.1\r\nconnection: close\r\n${line.repeat(count)}${HEAD}\r\n`);
    return first;
  };
  // The key is the last header.
  assert.match(await responseTo('a:b\r\n', 3_000), /^HTTP\/1\.1 200 /);
  assert.match(await responseTo('a: 0123456789\r\n', 1_600), /^HTTP\/1\.1 431 /);
  assert.equal((await ask(service.url)).status, 200);
});

test('limits connections per address, but not those of a trusted proxy', {
  skip: process.platform === 'linux' ? false : 'only Linux has more than one loopback address',
}, async (t) => {
  const crowded = await startService({
    settings: {
      FLOWHOOK_MAX_CONNECTIONS: '40',
      FLOWHOOK_MAX_ADDRESS_CONNECTIONS: '10',
      FLOWHOOK_KEEP_ALIVE_TIMEOUT: '1h',
      FLOWHOOK_HEADERS_TIMEOUT: '5m',
      FLOWHOOK_TRUST_PROXY: '127.0.0.3',
    },
  });
  t.after(() => crowded.stop());
  const { url } = crowded;
  const mine = await openMany(t, url, 10);
  for (const socket of mine) {
    const first = firstBytes(socket);
    socket.write(ME);
    assert.match(await first, /^HTTP\/1\.1 200 /);
  }
  const refused = await open(t, url);
  assert.match(
    await firstBytes(refused),
    /^HTTP\/1\.1 503 .*retry-after: .*Too many connections are open from this address/is,
  );
  await closed(refused);
  // Refused connections no longer count, and other addresses have their own limit.
  assert.equal((await ask(url, { from: '127.0.0.2' })).status, 200);
  mine[0]?.destroy();
  await until('the address may connect again', async () => (await ask(url)).status === 200);

  // Reaches the limit on all connections: idle ones are closed to make room.
  for (let n = 0; n < 31; n++) {
    const socket = await open(t, url, '127.0.0.3');
    const first = firstBytes(socket);
    socket.write(ME);
    await first;
  }
  await until('a connection is free', async () => (await ask(url, { from: '127.0.0.2' })).status === 200);
});
