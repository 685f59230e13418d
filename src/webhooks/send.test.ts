/** Single attempts against all kinds of receivers, over real sockets. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Webhook } from 'standardwebhooks';
import { drip, listen, receiver, tcp } from '../../test/support/webhooks/misbehaving-receivers.ts';
import type { Attempt, AttemptDetails } from '../model/delivery.ts';
import { parseAllowNetworks } from '../net/address-policy.ts';
import { createGuardedDispatcher } from '../net/dispatcher.ts';
import { createResolver } from '../net/resolver.ts';
import { destinationOf } from './destination.ts';
import { type Sent, sendAttempt } from './send.ts';

const secret = randomBytes(32);
const { privateKey } = generateKeyPairSync('ed25519');
const BODY = '{"id":"evt_1","type":"workflow_finished","name":"Zoë"}';
const NOW = Date.now();

const dispatcher = createGuardedDispatcher({
  policy: parseAllowNetworks('127.0.0.1'),
  resolver: createResolver({ servers: ['127.0.0.1:1'] }),
  connectMs: 2_000,
});
after(() => dispatcher.destroy());

async function send(url: string, timeoutMs = 5_000): Promise<Attempt> {
  const { attempt } = await sendWith({ url, timeoutMs });
  return attempt;
}

function sendWith(given: {
  url: string;
  headers?: Record<string, string>;
  secrets?: Uint8Array[];
  timeoutMs?: number;
  body?: string;
}): Promise<Sent> {
  const { url, headers = {}, secrets = [secret], timeoutMs = 5_000, body = BODY } = given;
  return sendAttempt(
    { dispatcher, now: () => NOW },
    {
      to: destinationOf({ url, headers, userAgent: 'flowhook/test' }),
      keys: { secrets, privateKey },
      timeoutMs,
      queuedMs: 7,
      messageId: 'evt_1',
      eventType: 'workflow_finished',
      attempt: 3,
      body,
    },
  );
}

test('posts the exact bytes, signed, with the headers that receivers need', async () => {
  const got = Promise.withResolvers<{ request: IncomingMessage; body: string }>();
  const host = await receiver((request, response, body) => {
    got.resolve({ request, body });
    response.end('thanks');
  });
  const attempt = await send(`http://${host}/hooks/a%20b?x=1&y=%C3%BC#part`);
  const { request, body } = await got.promise;
  assert.equal(request.method, 'POST');
  assert.equal(request.url, '/hooks/a%20b?x=1&y=%C3%BC');
  assert.equal(body, BODY);
  assert.equal(request.headers['content-type'], 'application/json');
  assert.equal(request.headers['content-length'], String(Buffer.byteLength(BODY)));
  assert.equal(request.headers['user-agent'], 'flowhook/test');
  assert.equal(request.headers['webhook-event'], 'workflow_finished');
  assert.equal(request.headers['webhook-attempt'], '3');
  assert.equal(request.headers['webhook-timestamp'], String(Math.floor(NOW / 1000)));
  assert.equal(request.headers.authorization, undefined);
  new Webhook(`whsec_${secret.toString('base64')}`).verify(body, request.headers as Record<string, string>);
  const { durationMs, details, ...rest } = attempt;
  assert.deepEqual(rest, { startedAt: NOW, outcome: 'ok', status: 200, error: null, response: 'thanks' });
  assert.ok(durationMs >= 0 && durationMs < 5_000);
});

test('user and password of the URL become a Basic header and are not in the request line', async () => {
  const got = Promise.withResolvers<IncomingMessage>();
  const host = await receiver((request, response) => {
    got.resolve(request);
    response.end();
  });
  await send(`http://ann%40x:p%3Ass%@${host}/a`);
  const request = await got.promise;
  assert.equal(request.url, '/a');
  assert.equal(request.headers.host, host);
  const [, encoded = ''] = request.headers.authorization?.split(' ') ?? [];
  assert.equal(Buffer.from(encoded, 'base64').toString(), 'ann@x:p%3Ass%');
});

test('a body in the structured mode of CloudEvents has its content type, also in the log', async () => {
  const types = Promise.withResolvers<string | undefined>();
  const host = await receiver((request, response) => {
    types.resolve(request.headers['content-type']);
    response.end();
  });
  const { attempt } = await sendWith({ url: `http://${host}/`, body: '{"specversion":"1.0","id":"evt_1"}' });
  assert.equal(await types.promise, 'application/cloudevents+json');
  assert.equal(attempt.details?.requestHeaders['content-type'], 'application/cloudevents+json');
});

test('custom headers are sent, instead of the Basic header of the URL, but never instead of content-type', async () => {
  const got = Promise.withResolvers<IncomingMessage>();
  const host = await receiver((request, response) => {
    got.resolve(request);
    response.end();
  });
  await sendWith({
    url: `http://ann:pass@${host}/`,
    headers: { 'X-Source': 'flowhook', Authorization: 'Bearer b', 'content-type': 'a/b' },
  });
  const { headers } = await got.promise;
  assert.equal(headers['x-source'], 'flowhook');
  assert.equal(headers.authorization, 'Bearer b');
  assert.equal(headers['content-type'], 'application/json');
});

test('during a rotation, receivers with the old and with the new secret accept', async () => {
  const got = Promise.withResolvers<IncomingMessage>();
  const host = await receiver((request, response) => {
    got.resolve(request);
    response.end();
  });
  const newer = randomBytes(32);
  await sendWith({ url: `http://${host}/`, secrets: [newer, secret] });
  const headers = (await got.promise).headers as Record<string, string>;
  assert.match(headers['webhook-signature'] ?? '', /^v1,\S+ v1,\S+ v1a,\S+$/);
  for (const one of [newer, secret]) new Webhook(`whsec_${one.toString('base64')}`).verify(BODY, headers);
  const [first] = (headers['webhook-signature'] ?? '').split(' ');
  new Webhook(`whsec_${newer.toString('base64')}`).verify(BODY, {
    ...headers,
    'webhook-signature': first ?? '',
  });
});

test('logs the request without its secrets, the response, the address and the time of each phase', async () => {
  const host = await receiver((_request, response) => {
    response.writeHead(200, { 'x-served-by': 'a', 'set-cookie': ['b=1', 'c=2'] }).end();
  });
  const url = `http://ann:pass@${host}/hooks?x=1#part`;
  const first = (await sendWith({ url, headers: { 'x-key': 'hush' } })).attempt.details;
  assert.equal(first?.url, `http://${host}/hooks?x=1`);
  assert.equal(first?.remoteAddress, '127.0.0.1');
  const { requestHeaders, responseHeaders, timing } = first ?? ({} as AttemptDetails);
  assert.deepEqual(
    { ...requestHeaders, 'webhook-signature': '' },
    {
      host,
      'content-length': String(Buffer.byteLength(BODY)),
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'flowhook/test',
      authorization: '***',
      'x-key': '***',
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(NOW / 1000)),
      'webhook-signature': '',
      'webhook-event': 'workflow_finished',
      'webhook-attempt': '3',
      'flowhook-hops': '1',
    },
  );
  assert.ok(!JSON.stringify(first).includes('hush') && !JSON.stringify(first).includes('pass'));
  assert.equal(responseHeaders['x-served-by'], 'a');
  assert.equal(responseHeaders['set-cookie'], 'b=1, c=2');
  assert.equal(timing.queuedMs, 7);
  assert.equal(timing.dnsMs, null, 'an IP literal is not looked up');
  assert.equal(timing.tlsMs, null);
  assert.ok(timing.connectMs !== null && timing.firstByteMs !== null);
  assert.ok(timing.connectMs <= timing.firstByteMs);

  await nextTurn();
  const second = (await sendWith({ url })).attempt.details;
  assert.equal(second?.timing.connectMs, null, 'the connection was open');
  assert.equal(second?.remoteAddress, '127.0.0.1');
});

test('masks echoed credentials in headers, body and error, even if truncated', async () => {
  const token = 't0ken-of-the-receiver';
  const host = await receiver((request, response) => {
    const { authorization, 'x-key': key } = request.headers;
    const location = `/${'x'.repeat(180)}${key}`;
    const body = JSON.stringify({ headers: request.headers }) + ' '.repeat(2_048);
    const filled = body.slice(0, 2_048 - 12) + key;
    response.writeHead(302, {
      location,
      'x-got': `${authorization} ${key}`,
      'content-type': 'application/json',
    });
    response.end(filled);
  });
  const url = `http://ann:pass-of-ann@${host}/`;
  const headers = { 'X-Key': token, accept: 'application/json' };
  const { attempt } = await sendWith({ url, headers });
  const basic = Buffer.from('ann:pass-of-ann').toString('base64');
  const logged = JSON.stringify(attempt);
  for (const secret of [token, token.slice(0, 8), basic]) assert.ok(!logged.includes(secret), secret);
  assert.equal(attempt.details?.responseHeaders['x-got'], '*** ***');
  assert.equal(attempt.details?.responseHeaders['content-type'], 'application/json');
  assert.match(attempt.error ?? '', /^HTTP 302 to \/x+\*\*\*: redirects/);
  assert.match(attempt.response ?? '', /"x-key":"\*\*\*".*\*\*\*$/);
});

test('logs which phase an attempt without a response reached', async () => {
  const named = await sendWith({ url: 'http://localhost:9/' });
  assert.equal(named.attempt.details?.remoteAddress, null);
  const silent = await tcp(() => undefined);
  const hung = await sendWith({ url: `http://${silent}/`, timeoutMs: 400 });
  assert.equal(hung.attempt.details?.remoteAddress, '127.0.0.1');
  assert.equal(hung.attempt.details?.timing.firstByteMs, null);
  assert.deepEqual(hung.attempt.details?.responseHeaders, {});
});

test('Retry-After counts only with 429 and 503', async () => {
  const host = await receiver((request, response) => {
    response.writeHead(Number(request.url?.slice(1)), { 'retry-after': '7' }).end();
  });
  for (const [status, expected] of [
    [429, 7_000],
    [503, 7_000],
    [200, null],
    [301, null],
    [500, null],
  ] as const) {
    assert.equal((await sendWith({ url: `http://${host}/${status}` })).retryAfterMs, expected);
  }
});

test('only 2xx is a success; redirects are reported and not followed', async () => {
  let requests = 0;
  const host = await receiver((request, response) => {
    requests += 1;
    response.writeHead(Number(request.url?.slice(1)), { location: '/200' }).end();
  });
  for (const [status, outcome, error] of [
    [200, 'ok', null],
    [204, 'ok', null],
    [299, 'ok', null],
    [301, 'http', /redirects are not followed/],
    [304, 'http', /redirects are not followed/],
    [307, 'http', /redirects are not followed/],
    [404, 'http', /HTTP 404: only 2xx/],
    [410, 'http', /unsubscribed/],
    [500, 'http', /HTTP 500/],
    [503, 'http', /HTTP 503/],
  ] as const) {
    const attempt = await send(`http://${host}/${status}`);
    assert.equal(attempt.outcome, outcome);
    assert.equal(attempt.status, status);
    if (error === null) assert.equal(attempt.error, null);
    else assert.match(attempt.error ?? '', error);
  }
  assert.equal(requests, 10);
});

test('an endpoint that never responds times out', async () => {
  const host = await tcp(() => undefined);
  const attempt = await send(`http://${host}/`, 60);
  assert.equal(attempt.outcome, 'timeout');
  assert.equal(attempt.status, null);
  assert.equal(
    attempt.error,
    'The request was sent, but the endpoint did not return complete headers within 0.06 s',
  );
});

test('a slow response times out, regardless of its status', async () => {
  const host = await receiver((_request, response) => {
    response.writeHead(200);
    drip(response.socket as Socket, () => response.write('.'));
  });
  const attempt = await send(`http://${host}/`, 120);
  assert.equal(attempt.outcome, 'timeout');
  assert.equal(attempt.status, 200);
});

test('slow headers time out', async () => {
  const host = await tcp((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx: ');
    drip(socket, () => socket.write('.'));
  });
  assert.equal((await send(`http://${host}/`, 120)).outcome, 'timeout');
});

test('a flood of interim responses is aborted', async () => {
  const host = await tcp((socket) => {
    drip(socket, () => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'));
  });
  assert.equal((await send(`http://${host}/`, 120)).outcome, 'timeout');
});

test('keeps the start of a huge response and aborts the rest', async () => {
  let sent = 0;
  const cut = Promise.withResolvers<void>();
  const host = await receiver((_request, response) => {
    response.writeHead(200);
    response.on('close', () => cut.resolve());
    const chunk = Buffer.alloc(16_384, 'x');
    const write = () => {
      if (response.destroyed) return;
      sent += chunk.length;
      response.write(chunk, () => setImmediate(write));
    };
    write();
  });
  const attempt = await send(`http://${host}/`);
  assert.equal(attempt.outcome, 'ok');
  assert.equal(attempt.response, 'x'.repeat(2_048));
  await cut.promise;
  assert.ok(sent < 64 * 1024 * 1024);
});

test('keeps whole characters and no NUL of a response', async () => {
  const host = await receiver((_request, response) => {
    response.writeHead(500).end(`${'y'.repeat(2_040)}\0\0éé☂☂☂`);
  });
  assert.equal((await send(`http://${host}/`)).response, `${'y'.repeat(2_040)}\ufffd\ufffdéé`);
});

test('does not decompress a response', async () => {
  const packed = gzipSync(Buffer.alloc(1_000_000));
  const host = await receiver((_request, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed);
  });
  assert.equal((await send(`http://${host}/`)).response, `(${packed.length} bytes, gzip)`);
});

test('distinguishes a refused connection, a broken one, and a response that is not HTTP', async () => {
  const closed = createTcpServer();
  const port = await listen(closed);
  closed.close();
  await once(closed, 'close');
  const resetting = await tcp((socket) => socket.once('data', () => socket.resetAndDestroy()));
  const closing = await tcp((socket) => socket.once('data', () => socket.end()));
  const halfway = await tcp((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf')),
  );
  const babbling = await tcp((socket) => socket.once('data', () => socket.end('220 mail.example ESMTP\r\n')));
  const wordy = await tcp((socket) =>
    socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`)),
  );
  for (const [url, outcome, error] of [
    [`http://127.0.0.1:${port}/`, 'connect', /nothing listens/],
    [`http://${resetting}/`, 'protocol', /reset before the response was complete/],
    [`http://${closing}/`, 'protocol', /closed before the response was complete/],
    [`http://${halfway}/`, 'protocol', /closed before the response was complete/],
    [`http://${babbling}/`, 'protocol', /not valid HTTP/],
    [`http://${wordy}/`, 'protocol', /response headers are larger/],
    [`https://${babbling}/`, 'tls', /does not use TLS/],
    ['http://10.0.0.5/', 'blocked', /10\.0\.0\.5 is a private address.*FLOWHOOK_ALLOW_NETWORKS/],
    ['http://localhost:9/', 'blocked', /::1 is a loopback address/],
    ['http://receiver.example/', 'dns', /receiver\.example could not be looked up/],
  ] as const) {
    const attempt = await send(url);
    assert.equal(attempt.outcome, outcome, url);
    assert.match(attempt.error ?? '', error, url);
    assert.equal(attempt.response, null);
  }
});

/** Undici releases a connection one turn after its response has ended. */
function nextTurn(): Promise<void> {
  return new Promise((go) => setImmediate(go));
}
