/** Endpoints without a secure connection: each attempt ends in time and reports what is wrong. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { certificateAuthority, selfSignedCertificate } from '../support/net/certificates.ts';
import { endpoint, expectOutcome, send, stopEndpoints, tlsEndpoint } from '../support/webhooks/hostile.ts';

after(stopEndpoints);

const authority = certificateAuthority();
const noOpenssl = authority === undefined && 'there is no openssl program to make certificates with';

test('TLS: expired, for another host, self-signed, and none at all', { skip: noOpenssl }, async () => {
  if (authority === undefined) return;
  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, authority.cert]);
  try {
    const good = await tlsEndpoint(authority.issue({ host: 'hooks.example', days: 1 }));
    const { attempt } = await expectOutcome(send(`https://hooks.example:${good}/`, 2_000), {
      outcome: 'ok',
      error: null,
    });
    const { dnsMs, connectMs, tlsMs, firstByteMs } = attempt.details?.timing ?? {};
    const phases = [dnsMs, connectMs, tlsMs, firstByteMs] as number[];
    assert.deepEqual(
      phases,
      phases.toSorted((a, b) => a - b),
      'each phase follows the previous one',
    );
    assert.ok(phases.every((ms) => typeof ms === 'number'));

    const plain = await endpoint((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    for (const [url, error] of [
      [
        `https://hooks.example:${await tlsEndpoint(authority.issue({ host: 'hooks.example', days: -1 }))}/`,
        /^The endpoint's certificate has expired\. Its operator must renew it \(CERT_HAS_EXPIRED\)$/,
      ],
      [
        `https://hooks.example:${await tlsEndpoint(authority.issue({ host: 'other.example', days: 1 }))}/`,
        /^The endpoint's certificate is for another host: .*hooks\.example.*other\.example/,
      ],
      [`https://127.0.0.1:${good}/`, /^The endpoint's certificate is for another host: .*127\.0\.0\.1/],
      [
        `https://hooks.example:${await tlsEndpoint(selfSignedCertificate('hooks.example'))}/`,
        /^The endpoint's certificate is self-signed/,
      ],
      [plain.replace('http:', 'https:'), /The endpoint does not use TLS on this port/],
    ] as const) {
      const failed = await expectOutcome(send(url, 2_000), { outcome: 'tls', status: null, error });
      assert.equal(failed.attempt.details?.remoteAddress, '127.0.0.1');
      assert.equal(failed.attempt.details?.timing.tlsMs, null);
      assert.notEqual(failed.attempt.details?.timing.connectMs, null);
    }
  } finally {
    setDefaultCACertificates(trusted);
  }
});

test('TLS: an endpoint that sends nothing', async () => {
  const url = await endpoint(() => undefined);
  await expectOutcome(send(url.replace('http:', 'https:')), {
    outcome: 'timeout',
    status: null,
    error: /^No connection was established within 0\.3 s$/,
  });
});

test('TLS: an endpoint that closes or resets the connection during the handshake', async () => {
  for (const end of ['end', 'resetAndDestroy'] as const) {
    const url = await endpoint((socket) => socket[end]());
    await expectOutcome(send(url.replace('http:', 'https:'), 2_000), {
      outcome: 'tls',
      status: null,
      error: /^The endpoint closed the connection during the TLS handshake$/,
    });
  }
});

test('TLS: an endpoint that is silent until the connection times out', async () => {
  const url = await endpoint(() => undefined);
  const { attempt } = await expectOutcome(send(url.replace('http:', 'https:'), 10_000), {
    outcome: 'timeout',
    status: null,
    error: /^The endpoint accepted the connection, but the TLS handshake timed out$/,
    withinMs: 5_000,
  });
  assert.equal(attempt.details?.remoteAddress, '127.0.0.1');
});

test('stopping does not wait for a connection that is being established', async () => {
  const stop = new AbortController();
  const url = await endpoint(() => stop.abort());
  const { attempt } = await send(url.replace('http:', 'https:'), 10_000, stop.signal);
  assert.notEqual(attempt.outcome, 'ok');
  assert.ok(attempt.durationMs < 9_000, `took ${attempt.durationMs} ms`);
});
