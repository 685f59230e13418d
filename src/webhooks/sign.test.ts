/** Signatures against the published vectors and the standardwebhooks package. */
import assert from 'node:assert/strict';
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  verify,
} from 'node:crypto';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { signatureHeaders } from './sign.ts';

const { privateKey } = generateKeyPairSync('ed25519');

function v1aOf(header: string): Buffer {
  return Buffer.from(/ v1a,(\S+)$/.exec(header)?.[1] ?? '', 'base64');
}

test('gives the signature of the published vector of Standard Webhooks', () => {
  const headers = signatureHeaders(
    { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' },
    { secret: Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64'), privateKey },
  );
  assert.match(headers['webhook-signature'], /^v1,g0hM9SsE\+OTPJTGt\/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1a,/);
});

test('v1a gives the signature of the published vector', () => {
  const vector = '6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==';
  const seed = Buffer.from(vector, 'base64').subarray(0, 32);
  const publicBytes = Buffer.from(vector, 'base64').subarray(32);
  const headers = signatureHeaders(
    { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' },
    { secret: randomBytes(32), privateKey: privateKeyOf(seed, publicBytes) },
  );
  assert.match(
    headers['webhook-signature'],
    / v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw\/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM\+m7TBAg==$/,
  );
});

test('the standardwebhooks package accepts what is signed, and refuses it changed', () => {
  const secret = randomBytes(32);
  const body = '{"id":"evt_1","name":"Zoë ☂"}';
  const timestamp = Math.floor(Date.now() / 1000);
  const headers = signatureHeaders({ id: 'evt_1', timestamp, body }, { secret, privateKey });
  const receiver = new Webhook(`whsec_${secret.toString('base64')}`);
  assert.deepEqual(receiver.verify(body, headers), JSON.parse(body));
  assert.throws(() => receiver.verify(`${body} `, headers));
  assert.throws(() => receiver.verify(body, { ...headers, 'webhook-id': 'evt_2' }));
  assert.throws(() => receiver.verify(body, { ...headers, 'webhook-timestamp': String(timestamp + 1) }));
});

test('v1a verifies with the public key alone, over id, timestamp and body', () => {
  const publicKey = createPublicKey(privateKey);
  const headers = signatureHeaders(
    { id: 'evt_1', timestamp: 7, body: '{}' },
    { secret: randomBytes(32), privateKey },
  );
  const signature = v1aOf(headers['webhook-signature']);
  assert.ok(verify(null, Buffer.from('evt_1.7.{}'), publicKey, signature));
  assert.ok(!verify(null, Buffer.from('evt_1.8.{}'), publicKey, signature));
});

function privateKeyOf(seed: Buffer, publicBytes: Buffer): KeyObject {
  const [d, x] = [seed.toString('base64url'), publicBytes.toString('base64url')];
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
}
