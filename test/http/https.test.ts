/** HTTPS without a proxy, renewed certificates, and trusted proxies. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { connect, type PeerCertificate } from 'node:tls';
import { Agent, request } from 'undici';
import { type Certificate, certificateAuthority } from '../support/net/certificates.ts';
import { startService } from '../support/service.ts';

const authority = certificateAuthority();
const skip = authority === undefined && 'openssl is not installed';
const directory = mkdtempSync(join(tmpdir(), 'flowhook-https-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
const SETTINGS = { FLOWHOOK_TLS_CERT: cert, FLOWHOOK_TLS_KEY: key };

function issue(): Certificate {
  const issued = authority?.issue({ host: 'localhost', days: 2 });
  assert.ok(issued);
  return issued;
}

function write(issued: Certificate): void {
  writeFileSync(cert, issued.cert);
  writeFileSync(key, issued.key);
}

/** The certificate that a new connection receives. */
function certificateAt(url: string): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const { hostname: host, port } = new URL(url);
    const socket = connect({ host, port: Number(port), ca: authority?.cert ?? '', servername: 'localhost' });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
  });
}

test('uses HTTPS with the configured certificate, and reports `https` URLs', { skip }, async (t) => {
  write(issue());
  const service = await startService({ settings: SETTINGS });
  t.after(() => service.stop());
  assert.match(service.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  assert.match(service.dashboard ?? '', /^https:/);
  const agent = new Agent({ connect: { ca: authority?.cert ?? '', servername: 'localhost' } });
  t.after(() => agent.close());
  const answer = await request(`${service.url}/v1/integrations/webhooks/list`, {
    dispatcher: agent,
    headers: { 'x-api-key': service.key },
  });
  assert.deepEqual([answer.statusCode, await answer.body.json()], [200, { webhooks: [] }]);
  const session = await request(`${service.url}/ui/api/session`, {
    dispatcher: agent,
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: service.url },
    body: JSON.stringify({ key: service.key }),
  });
  await session.body.dump();
  assert.match(String(session.headers['set-cookie']), /; Secure/);
  await assert.rejects(fetch(service.url.replace('https:', 'http:')), 'the port must refuse plain HTTP');
});

test('uses a renewed certificate for new connections, and keeps the old certificate while the files do not match', {
  skip,
}, async (t) => {
  const [first, second] = [issue(), issue()];
  write(first);
  const service = await startService({ settings: SETTINGS });
  t.after(() => service.stop());
  const before = await certificateAt(service.url);

  writeFileSync(cert, second.cert);
  await service.reload();
  assert.equal(
    (await certificateAt(service.url)).fingerprint256,
    before.fingerprint256,
    'only one file was written',
  );
  writeFileSync(key, 'no key at all');
  await service.reload();
  assert.equal(
    (await certificateAt(service.url)).fingerprint256,
    before.fingerprint256,
    'the key is invalid',
  );
  rmSync(key);
  await service.reload();
  assert.equal(
    (await certificateAt(service.url)).fingerprint256,
    before.fingerprint256,
    'the key is missing',
  );

  write(second);
  await service.reload();
  const renewed = await certificateAt(service.url);
  assert.notEqual(renewed.fingerprint256, before.fingerprint256);
});

test('refuses to start with unusable files, and says why', { skip }, async () => {
  write({ cert: issue().cert, key: issue().key });
  const together = /The certificate in .*cert\.pem and the key in .*key\.pem cannot be used together/;
  await assert.rejects(startService({ settings: SETTINGS }), together);
  rmSync(key);
  await assert.rejects(startService({ settings: SETTINGS }), /key\.pem cannot be read/);
  const onlyOne = startService({ settings: { FLOWHOOK_TLS_CERT: cert } });
  await assert.rejects(onlyOne, /FLOWHOOK_TLS_KEY must be set with FLOWHOOK_TLS_CERT/);
});

test('trusts only the configured proxies', async (t) => {
  /** Whether a sign-in with `x-forwarded-proto: https` gets a cookie only for TLS. */
  const isTrusted = async (trustProxy: string) => {
    const service = await startService({ settings: { FLOWHOOK_TRUST_PROXY: trustProxy } });
    t.after(() => service.stop());
    const answer = await fetch(`${service.url}/ui/api/session`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-proto': 'https',
        'sec-fetch-site': 'same-origin',
      },
      body: JSON.stringify({ key: service.key }),
    });
    assert.equal(answer.status, 200, await answer.text());
    return /; Secure/.test(answer.headers.get('set-cookie') ?? '');
  };
  assert.equal(await isTrusted('10.0.0.0/8, fd00::/8'), false);
  assert.equal(await isTrusted('10.0.0.0/8, 127.0.0.1'), true);
  assert.equal(await isTrusted('loopback'), true);
  assert.equal(await isTrusted('true'), true);
  await assert.rejects(
    startService({ settings: { FLOWHOOK_TRUST_PROXY: '10.0.0.0/99' } }),
    /FLOWHOOK_TRUST_PROXY must be .*found "10\.0\.0\.0\/99"/,
  );
});
