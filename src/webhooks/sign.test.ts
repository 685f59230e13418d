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
import vectors from '../../test/support/standard-webhooks.json' with { type: 'json' };
import { signatureHeaders } from './sign.ts';

const { privateKey } = generateKeyPairSync('ed25519');

function v1aOf(header: string): Buffer {
  return Buffer.from(/ v1a,(\S+)$/.exec(header)?.[1] ?? '', 'base64');
}

test('gives the signatures of the published vectors of Standard Webhooks', async () => {
  const { message, v1, v1a } = vectors;
  const pair = Buffer.from(v1a.privateKey.slice('whsk_'.length), 'base64');
  const headers = await signatureHeaders(message, {
    secrets: [Buffer.from(v1.secret.slice('whsec_'.length), 'base64')],
    privateKey: privateKeyOf(pair.subarray(0, 32), pair.subarray(32)),
  });
  assert.deepEqual(headers, {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': `${v1.signature} ${v1a.signature}`,
  });
  assert.equal(`whpk_${pair.subarray(32).toString('base64')}`, v1a.publicKey);
});

test('signs with each secret, the newest first', async () => {
  const [newer, older] = [randomBytes(32), randomBytes(32)];
  const of = async (...secrets: Buffer[]) => {
    const headers = await signatureHeaders(
      { id: 'evt_1', timestamp: 7, body: '{}' },
      { secrets, privateKey },
    );
    return headers['webhook-signature'].split(' ');
  };
  const [ofNewer, ofOlder] = [await of(newer), await of(older)];
  assert.deepEqual(await of(newer, older), [ofNewer[0], ofOlder[0], ofNewer[1]]);
});

test('the standardwebhooks package accepts what is signed, and refuses it changed', async () => {
  const secret = randomBytes(32);
  const body = '{"id":"evt_1","name":"Zoë ☂"}';
  const timestamp = Math.floor(Date.now() / 1000);
  const headers = await signatureHeaders({ id: 'evt_1', timestamp, body }, { secrets: [secret], privateKey });
  const receiver = new Webhook(`whsec_${secret.toString('base64')}`);
  assert.deepEqual(receiver.verify(body, headers), JSON.parse(body));
  assert.throws(() => receiver.verify(`${body} `, headers));
  assert.throws(() => receiver.verify(body, { ...headers, 'webhook-id': 'evt_2' }));
  assert.throws(() => receiver.verify(body, { ...headers, 'webhook-timestamp': String(timestamp + 1) }));
});

test('v1a verifies with the public key alone, over id, timestamp and body', async () => {
  const publicKey = createPublicKey(privateKey);
  const headers = await signatureHeaders(
    { id: 'evt_1', timestamp: 7, body: '{}' },
    { secrets: [randomBytes(32)], privateKey },
  );
  const signature = v1aOf(headers['webhook-signature']);
  assert.ok(verify(null, Buffer.from('evt_1.7.{}'), publicKey, signature));
  assert.ok(!verify(null, Buffer.from('evt_1.8.{}'), publicKey, signature));
});

function privateKeyOf(seed: Buffer, publicBytes: Buffer): KeyObject {
  const [d, x] = [seed.toString('base64url'), publicBytes.toString('base64url')];
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
}
