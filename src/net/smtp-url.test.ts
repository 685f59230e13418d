/** URLs of SMTP servers: ports, and when TLS and certificates are required. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSmtpUrl } from './smtp-url.ts';

const CASES: [url: string, port: number, implicit: boolean, tls: string, verifies: boolean, login: string][] =
  [
    ['smtp://mail.example.com', 587, false, 'optional', true, ''],
    ['smtp://a:b@mail.example.com', 587, false, 'required', true, 'a b'],
    ['smtp://a%40b:p%3Aq%2F@mail.example.com:2525/', 2525, false, 'required', true, 'a@b p:q/'],
    ['smtps://a:b@mail.example.com', 465, true, 'required', true, 'a b'],
    ['SMTPS://mail.example.com:2465', 2465, true, 'required', true, ''],
    ['smtp://127.0.0.1:25', 25, false, 'optional', false, ''],
    ['smtp://a:b@localhost', 587, false, 'optional', false, 'a b'],
    ['smtp://a:b@[::1]:25', 25, false, 'optional', false, 'a b'],
    ['smtp://localhost?tls=required', 587, false, 'required', true, ''],
    ['smtp://127.0.0.1.example.com', 587, false, 'optional', true, ''],
    ['smtp://a:b@mail.example.com?tls=off', 587, false, 'off', true, 'a b'],
    ['smtp://a:b@mail.example.com?tls=optional', 587, false, 'optional', true, 'a b'],
    ['smtps://mail.example.com?tls=unverified', 465, true, 'required', false, ''],
  ];

for (const [url, port, implicit, tls, verifies, login] of CASES) {
  test(`${url} means port ${port}, with TLS ${tls}`, () => {
    const found = parseSmtpUrl(url);
    assert.ok(!('expected' in found), JSON.stringify(found));
    assert.deepEqual(
      [found.port, found.implicitTls, found.tls, found.verifiesCertificate],
      [port, implicit, tls, verifies],
    );
    assert.equal(found.login === null ? '' : `${found.login.user} ${found.login.password}`, login);
    assert.doesNotMatch(found.name, /@/);
  });
}

const WRONG = [
  'mail.example.com',
  'http://mail.example.com',
  'smtp://',
  'smtp://mail.example.com/path',
  'smtp://mail.example.com:0',
  'smtp://mail.example.com:99999',
  'smtp://mail example.com',
  'smtp://a@mail.example.com',
  'smtp://:b@mail.example.com',
  'smtp://a:%zz@mail.example.com',
  'smtp://mail.example.com?tls=maybe',
  'smtp://mail.example.com?verify=off',
  'smtp://mail.example.com?tls=off&tls=required',
  'smtps://mail.example.com?tls=off',
];

for (const url of WRONG) {
  test(`${url} is refused`, () => assert.ok('expected' in parseSmtpUrl(url)));
}
