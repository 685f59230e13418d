/** Malicious and broken endpoints: each attempt ends in time, uses little memory, and reports what happened. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import {
  endpoint,
  expectOutcome,
  keepWriting,
  MIB,
  send,
  stopEndpoints,
} from '../support/webhooks/hostile.ts';

after(stopEndpoints);

test('an endpoint that never responds', async () => {
  await expectOutcome(send(await endpoint(() => undefined)), {
    outcome: 'timeout',
    status: null,
    error: /^The request was sent, but the endpoint did not return complete headers within 0\.3 s$/,
  });
});

test('an endpoint with slow headers', async () => {
  const url = await endpoint((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-slow: ');
    keepWriting(socket, '.', 5);
  });
  await expectOutcome(send(url), {
    outcome: 'timeout',
    status: null,
    error: /did not return complete headers/,
  });
});

test('an endpoint with a slow body', async () => {
  const url = await endpoint((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n');
    keepWriting(socket, '.', 5);
  });
  await expectOutcome(send(url), {
    outcome: 'timeout',
    status: 200,
    error: /^HTTP 200, but the response was not complete within 0\.3 s$/,
  });
});

test('an endpoint with an endless body: its start is kept, and the rest is aborted', async () => {
  const gone = Promise.withResolvers<void>();
  const url = await endpoint((socket) => {
    socket.on('close', () => gone.resolve());
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    keepWriting(socket, `10000\r\n${'x'.repeat(0x10000)}\r\n`);
  });
  await expectOutcome(send(url, 5_000), {
    outcome: 'ok',
    status: 200,
    error: null,
    response: 'x'.repeat(2_048),
  });
  await gone.promise;
});

test('an endpoint that fails with an endless body', async () => {
  const url = await endpoint((socket) => {
    socket.write('HTTP/1.1 500 Oh\r\n\r\n');
    keepWriting(socket, 'y'.repeat(65_536));
  });
  await expectOutcome(send(url, 5_000), { outcome: 'http', status: 500, error: /^HTTP 500: only 2xx/ });
});

test('an endpoint with endless chunk extensions', async () => {
  const url = await endpoint((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;');
    keepWriting(socket, 'e'.repeat(16_384));
  });
  const { attempt } = await send(url, 500);
  assert.notEqual(attempt.outcome, 'ok');
  assert.match(attempt.error ?? '', /not complete within|not valid HTTP|closed before/);
});

test('an endpoint that sends a gzip bomb, which is not decompressed', async () => {
  const bomb = gzipSync(Buffer.alloc(100 * MIB));
  const url = await endpoint((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
    socket.write(bomb);
  });
  await expectOutcome(send(url, 2_000), {
    outcome: 'ok',
    error: null,
    response: '(65536 bytes or more, gzip)',
  });
});

test('an endpoint that sends endless interim responses', async () => {
  const url = await endpoint((socket) =>
    keepWriting(socket, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
  );
  await expectOutcome(send(url, 5_000), {
    outcome: 'protocol',
    status: null,
    error: /^The endpoint sent more than 32 interim responses \(1xx\) but no final response$/,
  });
});

test('a few interim responses are accepted', async () => {
  const hint = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
  const url = await endpoint((socket) => {
    socket.write(`${hint.repeat(3)}HTTP/1.1 204 Fine\r\n\r\n`);
  });
  await expectOutcome(send(url), { outcome: 'ok', status: 204, error: null });
});

for (const status of [100, 101]) {
  test(`an endpoint that returns ${status} without being asked`, async () => {
    const url = await endpoint((socket) => socket.write(`HTTP/1.1 ${status} Go\r\nupgrade: x\r\n\r\n`));
    await expectOutcome(send(url), { outcome: 'protocol', error: /returned HTTP 100 \(Continue\) or 101/ });
  });
}

test('an endpoint that resets the connection', async () => {
  let requests = 0;
  const url = await endpoint((socket) => {
    requests += 1;
    socket.resetAndDestroy();
  });
  await expectOutcome(send(url), {
    outcome: 'protocol',
    error: /^The connection was reset before the response was complete$/,
  });
  assert.equal(requests, 1, 'a request on a new connection is not repeated');
});

test('an endpoint that resets the connection during its response', async () => {
  const url = await endpoint((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf', () =>
      setTimeout(() => socket.resetAndDestroy(), 20),
    );
  });
  await expectOutcome(send(url), { outcome: 'protocol', status: 200, error: /reset before the response/ });
});

test('an endpoint with huge headers', async () => {
  const url = await endpoint((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n');
    keepWriting(socket, `x-${'y'.repeat(1_000)}: z\r\n`);
  });
  await expectOutcome(send(url, 5_000), {
    outcome: 'protocol',
    error: /^The response headers are larger than 16 KiB$/,
  });
});

test('an endpoint with many headers: only some are logged', async () => {
  const lines = Array.from({ length: 700 }, (_, index) => `h${index}: ${index}\r\n`).join('');
  const url = await endpoint((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${lines}content-length: 0\r\n\r\n`);
  });
  const { attempt } = await expectOutcome(send(url), { outcome: 'ok', error: null });
  assert.equal(Object.keys(attempt.details?.responseHeaders ?? {}).length, 50);
});

for (const [what, answer, error] of [
  ['is no HTTP', '220 mail.example ESMTP\r\n', /^The response is not valid HTTP\/1\.1/],
  ['is HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^The response is not valid HTTP\/1\.1/],
  [
    'has two lengths',
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
    /The length of the response differs/,
  ],
  [
    'has a length and chunks',
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    /The length of the response differs/,
  ],
  ['has a broken header', 'HTTP/1.1 200 OK\r\nno colon\r\n\r\n', /not valid HTTP/],
] as const) {
  test(`an endpoint whose response ${what}`, async () => {
    const url = await endpoint((socket) => socket.end(answer));
    await expectOutcome(send(url), { outcome: 'protocol', error });
  });
}

test('an endpoint that redirects, even to metadata addresses: the redirect is reported and not followed', async () => {
  let requests = 0;
  let location = '';
  const url = await endpoint((socket) => {
    requests += 1;
    socket.end(
      `HTTP/1.1 302 Found\r\nlocation: ${location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
    );
  });
  const targets = [
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/',
    'http://metadata.google.internal/',
    url,
    '/hook',
    '//127.0.0.1/',
    'file:///etc/passwd',
    `http://a.example/${'z'.repeat(5_000)}`,
  ];
  for (location of targets) {
    await expectOutcome(send(url), {
      outcome: 'http',
      status: 302,
      error: /^HTTP 302 to \S+: redirects are not followed\. Subscribe the new URL$/,
    });
  }
  assert.equal(requests, targets.length);
});

test('ignores an invalid Retry-After', async () => {
  const url = await endpoint((socket) =>
    socket.end('HTTP/1.1 503 Busy\r\nretry-after: -1\r\nretry-after: later\r\ncontent-length: 0\r\n\r\n'),
  );
  const sent = await expectOutcome(send(url), { outcome: 'http', status: 503, error: /^HTTP 503/ });
  assert.equal(sent.retryAfterMs, null);
});

test('an endpoint that closes a kept-alive connection between two requests costs no attempt', async () => {
  const open: Socket[] = [];
  const url = await endpoint((socket) => {
    open.push(socket);
    socket.write('HTTP/1.1 204 Fine\r\n\r\n');
  });
  await expectOutcome(send(url), { outcome: 'ok', error: null });
  const closed = once(open[0] as Socket, 'close');
  open[0]?.end();
  await closed;
  await expectOutcome(send(url), { outcome: 'ok', error: null });
  assert.notEqual(open[0], open[1]);
});

test('an endpoint that closes a kept-alive connection just as the next request arrives costs no attempt', async () => {
  for (const end of ['end', 'resetAndDestroy'] as const) {
    let requests = 0;
    const seen = new Set<Socket>();
    const url = await endpoint((socket) => {
      requests += 1;
      // The second request on a connection arrives after its end, as if both had crossed.
      if (seen.has(socket)) return socket[end]();
      seen.add(socket);
      socket.write('HTTP/1.1 204 Fine\r\n\r\n');
    });
    await expectOutcome(send(url), { outcome: 'ok', error: null });
    await nextTurn();
    const { attempt } = await expectOutcome(send(url), { outcome: 'ok', error: null });
    assert.equal(requests, 3);
    assert.notEqual(attempt.details?.timing.connectMs, null, 'sent on a new connection');
  }
});

test('for responses made of random pieces, the attempt ends with a status or an error', async () => {
  const pieces = [
    ...[
      'HTTP/1.1 200 OK\r\n',
      'HTTP/1.0 200\r\n',
      'HTTP/1.1 101 Up\r\n',
      'HTTP/1.1 100 Go\r\n',
      'HTTP/1.1 103\r\n',
    ],
    ...[
      'HTTP/1.1 204 No\r\n',
      'HTTP/1.1 304 Not\r\n',
      'HTTP/1.1 999 Odd\r\n',
      'HTTP/1.1 000 Zero\r\n',
      'HTTP/2 200\r\n',
    ],
    ...['content-length: 5\r\n', 'content-length: -1\r\n', 'content-length: 99999999999999999999\r\n'],
    ...[
      'transfer-encoding: chunked\r\n',
      'transfer-encoding: gzip\r\n',
      'connection: upgrade\r\n',
      'upgrade: x\r\n',
    ],
    ...['connection: close\r\n', 'keep-alive: timeout=0\r\n', 'keep-alive: timeout=-1\r\n', 'trailer: x\r\n'],
    ...[
      '__proto__: x\r\n',
      'constructor: x\r\n',
      ' folded\r\n',
      ': no name\r\n',
      'x\0y: z\r\n',
      'x: \xff\xfe\r\n',
    ],
    ...['location: \r\n', 'retry-after: 1\r\n', 'content-encoding: gzip\r\ncontent-encoding: br\r\n'],
    ...[
      '\r\n',
      '\r\n',
      '\r\n',
      '\n',
      '\r',
      'hello',
      '5\r\nhello\r\n',
      '0\r\n\r\n',
      'ffffffffffffffff\r\n',
      '\0\0',
    ],
  ];
  let answer = '';
  let ends = true;
  const url = await endpoint((socket) => {
    if (ends) socket.end(answer, 'latin1');
    else socket.write(answer, 'latin1');
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...pieces), { maxLength: 12 }),
      fc.boolean(),
      fc.integer({ min: 0, max: 19 }),
      async (chosen, startsWell, stays) => {
        answer = (startsWell ? 'HTTP/1.1 200 OK\r\n' : '') + chosen.join('');
        ends = stays > 0;
        const { attempt } = await send(url, 100);
        assert.ok(attempt.durationMs < 10_000);
        if (attempt.outcome === 'ok') assert.equal(attempt.error, null);
        else assert.match(attempt.error ?? '', /^[A-Z][^\0\n]{10,}$/);
        JSON.stringify(attempt);
      },
    ),
    { numRuns: 300, timeout: 20_000 },
  );
});

/** Undici releases a connection one turn after its response has ended. */
function nextTurn(): Promise<void> {
  return new Promise((go) => setImmediate(go));
}
