/** Changes of certificate files, and how they are logged. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { certificateAuthority } from '../../../test/support/net/certificates.ts';
import { type Logger, silentLogger } from '../../observe/log.ts';
import { Certificate } from './certificate.ts';

const authority = certificateAuthority();
const skip = authority === undefined && 'openssl is not installed';
const directory = mkdtempSync(join(tmpdir(), 'flowhook-certificate-'));
after(() => rmSync(directory, { recursive: true, force: true }));

test('logs unusable files once, and again only after they were usable', {
  skip,
}, () => {
  const issued = authority?.issue({ host: 'localhost', days: 2 });
  assert.ok(issued);
  const files = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') };
  writeFileSync(files.cert, issued.cert);
  writeFileSync(files.key, issued.key);
  let logged = 0;
  const log: Logger = {
    ...silentLogger,
    error: () => {
      logged += 1;
    },
  };
  const certificate = new Certificate(files, log);
  for (const [key, expected] of [
    ['no key', 1],
    ['no key', 1],
    [issued.key, 1],
    ['no key', 2],
    [undefined, 3],
    [undefined, 3],
    [issued.key, 3],
    [undefined, 4],
  ] as const) {
    if (key === undefined) rmSync(files.key, { force: true });
    else writeFileSync(files.key, key);
    certificate.look();
    assert.equal(logged, expected, `after ${key ?? 'the file was deleted'}`);
  }
  assert.equal(certificate.pair.cert, issued.cert);
});

test('refuses empty files, and a key that belongs to a different certificate', { skip }, () => {
  const [one, other] = ['localhost', 'other.example'].map((host) => authority?.issue({ host, days: 2 }));
  assert.ok(one && other);
  const files = { cert: join(directory, 'one.pem'), key: join(directory, 'one-key.pem') };
  for (const [cert, key] of [
    ['', ''],
    [one.cert, ''],
    ['', one.key],
    [one.cert, other.key],
  ] as const) {
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key);
    assert.throws(
      () => new Certificate(files, silentLogger),
      /one\.pem and the key in .* cannot be used together/,
    );
  }
});
