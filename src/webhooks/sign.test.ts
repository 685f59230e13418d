/** Signatures against the published vectors and the standardwebhooks package. */
import assert from 'node:assert/strict';
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import vectors from '../../test/support/webhooks/standard-webhooks.json' with { type: 'json' };
import { createSignatureCache, signatureHeaders } from './sign.ts';

const { privateKey } = generateKeyPairSync('ed25519');

function v1aOf(header: string): Buffer {
  return Buffer.from(/ v1a,(\S+)$/.exec(header)?.[1] ?? '', 'base64');
}

test('makes the signatures of the published vectors of Standard Webhooks', async () => {
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

test('signs with each secret, newest first', async () => {
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

test('the standardwebhooks package accepts signed messages, and rejects changed ones', async () => {
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

test('v1a is verified with the public key, over id, timestamp and body', async () => {
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

const { privateKey: mine } = generateKeyPairSync('ed25519');
const { privateKey: other } = generateKeyPairSync('ed25519');

function setUp() {
  let made = 0;
  const signOnce = createSignatureCache((content: Buffer, key: KeyObject) => {
    made += 1;
    return Promise.resolve(sign(null, content, key));
  });
  return { signOnce, made: () => made };
}

test('signs the same content once', async () => {
  const { signOnce, made } = setUp();
  const content = Buffer.from('evt_1.1763696437.{"name":"Zoë"}');
  for (let webhook = 0; webhook < 100; webhook += 1) {
    assert.deepEqual(await signOnce(Buffer.from(content), mine), sign(null, content, mine));
  }
  assert.equal(made(), 1);
});

test('signs again for another content, second or key', async () => {
  const { signOnce, made } = setUp();
  const contents = ['evt_1.1.{"name":"Ann"}', 'evt_1.1.{"name":"xxx"}', 'evt_1.2.{"name":"Ann"}'];
  for (const content of contents.map((text) => Buffer.from(text))) {
    for (const key of [mine, other]) assert.deepEqual(await signOnce(content, key), sign(null, content, key));
  }
  assert.equal(made(), 6);
});

test('drops the oldest signature', () => {
  const { signOnce, made } = setUp();
  for (let event = 0; event < 300; event += 1) signOnce(Buffer.from(`evt_${event}`), mine);
  signOnce(Buffer.from('evt_299'), mine);
  assert.equal(made(), 300);
  signOnce(Buffer.from('evt_0'), mine);
  assert.equal(made(), 301);
});
