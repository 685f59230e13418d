/** Strict HTTP over raw sockets: malformed input that Node's parser accepts, and uninvited bodies. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { assertAnswer, sendBytes } from '../support/net/wire.ts';
import { startService } from '../support/service.ts';

const service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
after(() => service.stop());
const { host, hostname, port } = new URL(service.url);
const KEY = `x-api-key: ${service.key}\r\n`;
const CLOSE = 'connection: close\r\n';
const PUSH = 'POST /v1/workflows/people/push';

async function statusOf(head: string, body = '') {
  const got = await sendBytes(service.url, `${head}\r\n${body}`);
  if (got.status >= 400) assertAnswer(got);
  return got;
}

test('requires exactly one valid host header', async () => {
  const ask = async (hosts: string) =>
    (await statusOf(`GET /v1/me HTTP/1.1\r\n${hosts}${KEY}${CLOSE}`)).status;
  for (const refused of [
    '',
    'host: a b\r\n',
    'host: a/b\r\n',
    'host: user@a\r\n',
    'host: a:b\r\n',
    'host: [::1\r\n',
    'host: a\r\nhost: b\r\n',
    'host: a\r\nhost: a\r\n',
  ]) {
    assert.equal(await ask(refused), 400, refused);
  }
  for (const taken of [`host: ${host}\r\n`, 'host: [::1]:8080\r\n', 'host: a.example\r\n', 'host:\r\n']) {
    assert.equal(await ask(taken), 200, taken);
  }
});

test('OPTIONS * returns the methods of the server', async () => {
  for (const target of ['*', `http://${host}`]) {
    const { status, headers, text } = await statusOf(`OPTIONS ${target} HTTP/1.1\r\nhost: a\r\n${CLOSE}`);
    assert.deepEqual([status, text], [204, ''], target);
    assert.match(String(headers.allow), /GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS/);
  }
  assert.equal((await statusOf(`GET * HTTP/1.1\r\nhost: a\r\n${CLOSE}`)).status, 404);
});

test('treats a target in absolute form as its path and query', async () => {
  for (const [target, status] of [
    [`http://${host}/v1/me`, 200],
    ['HTTP://elsewhere.example/v1/jobs?limit=1', 200],
    ['https://elsewhere.example/v1/me', 200],
    ['http://elsewhere.example', 404],
    ['http://elsewhere.example?x=1', 404],
    ['http:///v1/me', 404],
    ['ftp://elsewhere.example/v1/me', 404],
  ] as const) {
    const got = await statusOf(`GET ${target} HTTP/1.1\r\nhost: a\r\n${KEY}${CLOSE}`);
    assert.equal(got.status, status, target);
  }
});

test('refuses other versions of HTTP with 505', async () => {
  for (const version of ['2.0', '3.0', '0.9']) {
    assert.equal((await statusOf(`GET /livez HTTP/${version}\r\nhost: a\r\n`)).status, 505, version);
  }
  assert.equal((await statusOf('PRI * HTTP/2.0\r\n', 'SM\r\n\r\n')).status, 505);
  assert.equal((await statusOf(`GET /livez HTTP/1.0\r\n`)).status, 200);
  // The contract has no 505.
  const data = 'GET /v1/workflows/people/data HTTP';
  assert.equal((await statusOf(`${data}/2.0\r\nhost: a\r\n${KEY}`)).status, 400);
  assert.equal((await statusOf(`${data}/0.9\r\nhost: a\r\n${KEY}`)).status, 400);
});

test('refuses a body in an unsupported transfer coding', async () => {
  const ask = async (coding: string, line = PUSH) =>
    (
      await statusOf(
        `${line} HTTP/1.1\r\nhost: a\r\n${KEY}content-type: application/json\r\n${CLOSE}transfer-encoding: ${coding}\r\n`,
        'c\r\n[{"id":"1"}]\r\n0\r\n\r\n',
      )
    ).status;
  assert.equal(await ask('gzip, chunked'), 501);
  assert.equal(await ask('x-own, chunked'), 501);
  // The contract has no 501.
  assert.equal(await ask('gzip, chunked', 'POST /v1/workflows/people/queue'), 400);
  assert.equal(await ask('Chunked'), 200);
});

test('a client that resets its connection after CONNECT does not end the process', async () => {
  for (let tries = 0; tries < 20; tries += 1) {
    const { socket, until } = await open(`CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n${'x'.repeat(100_000)}`);
    if (tries % 2 === 0) await until(/"error"/);
    socket.resetAndDestroy();
  }
  assert.equal((await statusOf(`GET /livez HTTP/1.1\r\nhost: a\r\n${CLOSE}`)).status, 200);
});

test('CONNECT after pending requests ends them and the connection', async () => {
  const stream = `GET /v1/stream HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n${KEY}\r\n`;
  const wait = `GET /v1/events?after=now&wait=10 HTTP/1.1\r\nhost: a\r\n${KEY}\r\n`;
  const { socket } = await open(`${wait}${stream}`);
  const openStreams = async () => {
    const { text } = await statusOf(`GET /metrics HTTP/1.1\r\nhost: a\r\n${KEY}${CLOSE}`);
    return /^flowhook_streams_open (\d+)$/m.exec(text)?.[1];
  };
  while ((await openStreams()) !== '1');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write('CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n');
  await closed;
  const end = performance.now() + 3_000;
  while ((await openStreams()) !== '0') assert.ok(performance.now() < end, 'the stream is still open');
});

/** A connection whose responses are collected. */
async function open(head: string): Promise<{ socket: Socket; until(pattern: RegExp): Promise<string> }> {
  const socket = connect({ host: hostname, port: Number(port) });
  let text = '';
  let isClosed = false;
  let look = () => {};
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    look();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    isClosed = true;
    look();
  });
  socket.write(head);
  return {
    socket,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        look = () => {
          if (pattern.test(text)) resolve(text);
          else if (isClosed) reject(new Error(`closed after ${JSON.stringify(text)}`));
        };
        look();
      }),
  };
}

const EXPECT = 'host: a\r\nexpect: 100-continue\r\ncontent-type: application/json\r\n';

test('refuses requests with `expect: 100-continue` before the body is sent', async () => {
  for (const [head, status] of [
    [`${PUSH} HTTP/1.1\r\n${EXPECT}content-length: 200000000\r\n`, 401],
    [`${PUSH} HTTP/1.1\r\n${EXPECT}transfer-encoding: chunked\r\nx-api-key: wrong\r\n`, 401],
    [`POST /v1/workflows/none/push HTTP/1.1\r\n${EXPECT}${KEY}content-length: 200000000\r\n`, 404],
    [
      `POST /v1/integrations/webhooks/subscribe HTTP/1.1\r\n${EXPECT}${KEY}content-length: 200000000\r\n`,
      400,
    ],
  ] as const) {
    const { status: got, headers } = await statusOf(head);
    assert.equal(got, status, head);
    assert.equal(headers.connection, 'close', head);
  }
});

test('sends `100 Continue` once for an accepted request', async () => {
  const body = '[{"id":"1"}]';
  const { socket, until } = await open(
    `${PUSH} HTTP/1.1\r\n${EXPECT}${KEY}${CLOSE}content-length: ${body.length}\r\n\r\n`,
  );
  assert.equal(await until(/\r\n\r\n/), 'HTTP/1.1 100 Continue\r\n\r\n');
  socket.write(body);
  assert.match(await until(/"records"/), /HTTP\/1\.1 200 OK\r\n/);
  socket.destroy();
});

test('after a refusal, a limited part of the body is read, and the response arrives', async () => {
  const { socket, until } = await open(`${PUSH} HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n`);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const response = until(/"error"/);
  const block = Buffer.alloc(1_048_576, 'x');
  const pour = () => {
    while (!socket.destroyed && socket.write(block));
  };
  socket.on('drain', pour);
  pour();
  assert.match(await response, /HTTP\/1\.1 401 /);
  await closed;
  assert.ok(socket.bytesWritten < 1_000_000_000, `${socket.bytesWritten} bytes were read`);
});

test('keeps the connection after a refusal if the body is small', async () => {
  const body = Buffer.alloc(200_000, 'x');
  const { socket, until } = await open(
    `${PUSH} HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  await until(/"error"/);
  socket.write(body);
  socket.write(`GET /livez HTTP/1.1\r\nhost: a\r\n\r\n`);
  assert.match(await until(/"status"/), /"status":"ok"/);
  socket.destroy();
});
