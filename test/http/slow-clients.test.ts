/**
 * Clients that take their time, or more than their share: others are answered all the same, and in the end all of them
 * are closed. `SLOW_CLIENTS=2000` opens so many idle connections, and a quarter as many that send a request byte by byte;
 * unless told, it is 300 and 75.
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

const IDLE = Number(process.env.SLOW_CLIENTS ?? 300);
const LORIS = Math.ceil(IDLE / 4);
const SLOW_BODIES = 20;
const STALLED_READERS = 10;
const KEY = 'test-key-of-the-default-team';
const HEAD = `host: a\r\nx-api-key: ${KEY}\r\n`;
const ME = `GET /v1/me HTTP/1.1\r\n${HEAD}\r\n`;
/** Beyond all that the kernel buffers for a connection. */
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

/** One request on a connection of its own; status 0 when it was not answered. */
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

/** A connection, open; what breaks it is no error here. */
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

/** Resolves when the other side has closed it, or it is broken. */
function closed(socket: Socket): Promise<void> {
  socket.resume();
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });
}

/** Resolves with what has come when the first bytes are there; nothing when it was closed before. */
function firstBytes(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    socket.once('close', () => resolve(''));
  });
}

/** Sends a text byte by byte, as slowly as its caller goes round. */
function trickle(socket: Socket, text: string): () => void {
  let sent = 0;
  return () => {
    if (sent < text.length && socket.writable) socket.write(text[sent] ?? '');
    sent += 1;
  };
}

test('idle, slow and stalled clients leave others unharmed', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-slow-'));
  const files = join(directory, 'workflows', 'default');
  await mkdir(files, { recursive: true });
  await writeFile(join(files, 'large.yaml'), 'source: { type: push }\n');
  const server = await startServerProcess({
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
    // As it is by default, and how many there are must not depend on how fast this machine is.
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
  // The first read writes the answer that others are sent.
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
    const answers = await Promise.all([
      ...Array.from({ length: 4 }, () => ask(url)),
      ask(url, { path: '/v1/workflows/large/data?limit=1' }),
    ]);
    statuses.push(...answers.map(({ status }) => status));
  }
  assert.deepEqual([...new Set(statuses)], [200], 'all of them were answered');
  const grown = (await residentMb(url)) - before;
  t.diagnostic(`${IDLE} idle, ${LORIS} slow: ${statuses.length} answered, ${grown} MB more in the server`);
  // Some 10 kB for each connection; what stalls is not held for each.
  assert.ok(grown < 200 + IDLE / 20, `the server has grown by ${grown} MB`);
  const still = [...unused, ...used].filter(({ destroyed }) => !destroyed);
  assert.equal(still.length, IDLE, 'none of them was ended meanwhile');

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

test('whoever is too slow is closed, and whoever never asked for anything without a word', async (t) => {
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
  const told = unused.map(firstBytes);
  const toldOfHeads = halfHeads.map(firstBytes);
  await Promise.all([...unused, ...used, ...halfHeads, ...halfBodies, ...halfClosed].map(closed));
  for (const text of await Promise.all(told)) assert.equal(text, '');
  // Without a word where this test was slower than its server.
  for (const text of await Promise.all(toldOfHeads))
    assert.match(text, /^$|^HTTP\/1\.1 400 .*took too long/s);
});

test('requests in one go are answered as far as a connection may ask, and others are not kept waiting', async (t) => {
  const reads = await openMany(t, service.url, 2);
  const doesNotRead = await openMany(t, service.url, 2);
  const gone: Promise<void>[] = [];
  for (const socket of reads) {
    gone.push(closed(socket));
    socket.write(ME.repeat(10_000));
  }
  for (const socket of doesNotRead) {
    socket.pause();
    gone.push(
      new Promise((resolve) => {
        socket.once('close', () => resolve());
      }),
    );
    socket.write(ME.repeat(10_000));
  }
  // Of all that come while so many are refused one may be told to come back: then it does.
  for (let answered = 0; answered < 50; ) {
    const { status } = await ask(service.url);
    assert.ok(status === 200 || status === 503, `${status}`);
    if (status === 200) answered += 1;
  }
  await Promise.all(gone);
});

test('ten requests in one go are answered in their order', async (t) => {
  const socket = await open(t, service.url);
  const chunks: string[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk.toString()));
  const paths = Array.from({ length: 10 }, (_, n) => `/v1/jobs/job_${n}`);
  const asked = paths.map((path, n) => `GET ${path} HTTP/1.1\r\n${HEAD}x-request-id: number-${n}\r\n`);
  socket.write(`${asked.join('\r\n')}connection: close\r\n\r\n`);
  await closed(socket);
  const answers = chunks.join('');
  assert.equal(answers.match(/HTTP\/1\.1 404 /g)?.length, 10);
  const ids = [...answers.matchAll(/x-request-id: (\S+)/g)].map(([, id]) => id);
  assert.deepEqual(
    ids,
    [...paths.keys()].map((n) => `number-${n}`),
  );
});

test('thousands of header lines are read as far as 16 KiB, and none of them is dropped', async (t) => {
  const answerTo = async (line: string, count: number) => {
    const socket = await open(t, service.url);
    const first = firstBytes(socket);
    socket.write(`GET /v1/me HTTP/1.1\r\nconnection: close\r\n${line.repeat(count)}${HEAD}\r\n`);
    return first;
  };
  // What stands last is the key.
  assert.match(await answerTo('a:b\r\n', 3_000), /^HTTP\/1\.1 200 /);
  assert.match(await answerTo('a: 0123456789\r\n', 1_600), /^HTTP\/1\.1 431 /);
  assert.equal((await ask(service.url)).status, 200);
});

test('an address has its share of connections, and a trusted proxy any number', {
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
  const words = firstBytes(refused);
  assert.match(
    await words,
    /^HTTP\/1\.1 503 .*retry-after: .*Too many connections are open from this address/is,
  );
  await closed(refused);
  // Of what is refused the server has forgotten everything, and others have a share of their own.
  assert.equal((await ask(url, { from: '127.0.0.2' })).status, 200);
  mine[0]?.destroy();
  await until(async () => (await ask(url)).status === 200);

  // As many as there may be in all: those that are idle make room.
  for (let n = 0; n < 31; n++) {
    const socket = await open(t, url, '127.0.0.3');
    const first = firstBytes(socket);
    socket.write(ME);
    await first;
  }
  await until(async () => (await ask(url, { from: '127.0.0.2' })).status === 200);
});

/** Asks until it is so. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo()));
}
