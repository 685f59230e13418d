/** Verifies webhook requests signed by the service and by another library. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { signatureHeaders } from '../../src/webhooks/sign.ts';
import vectors from '../../test/support/webhooks/standard-webhooks.json' with { type: 'json' };
import { NotVerified, verifyWebhook } from '../src/flowhook-client.ts';

const body = JSON.stringify({ id: 'evt_1', type: 'webhook_test', data: { message: 'für alle' } });
const bytes = randomBytes(32);
const secret = `whsec_${bytes.toString('base64')}`;
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const whpk = (key: typeof publicKey) =>
  `whpk_${Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64')}`;
const nowS = Math.floor(Date.now() / 1_000);

const signed = (timestamp = nowS) =>
  signatureHeaders({ id: 'evt_1', timestamp, body }, { secrets: [bytes], privateKey });

test('verifies signatures of the service with the secret and with the public key', async () => {
  const headers = await signed();
  for (const trust of [{ secrets: [secret] }, { publicKeys: [whpk(publicKey)] }]) {
    const event = await verifyWebhook(body, headers, trust);
    assert.equal(event.type, 'webhook_test');
    for (const same of [Buffer.from(body), new Uint8Array(Buffer.from(body)).buffer]) {
      assert.equal((await verifyWebhook(same, new Headers(headers), trust)).id, 'evt_1');
    }
  }
});

test('verifies signatures of another library, and with an old and a new secret', async () => {
  const signature = new Webhook(secret).sign('evt_1', new Date(nowS * 1_000), body);
  const headers = {
    'Webhook-Id': 'evt_1',
    'webhook-timestamp': String(nowS),
    'webhook-signature': `v1,AAAA ${signature}`,
  };
  const other = `whsec_${randomBytes(24).toString('base64')}`;
  assert.equal((await verifyWebhook(body, headers, { secrets: [other, secret] })).id, 'evt_1');
});

test('verifies the published test vectors at their time', async () => {
  const { message, v1, v1a } = vectors;
  for (const [signature, trust] of [
    [v1.signature, { secrets: [v1.secret] }],
    [v1a.signature, { publicKeys: [v1a.publicKey] }],
  ] as const) {
    const headers = {
      'webhook-id': message.id,
      'webhook-timestamp': String(message.timestamp),
      'webhook-signature': signature,
    };
    await verifyWebhook(message.body, headers, { ...trust, nowMs: message.timestamp * 1_000 });
    await assert.rejects(verifyWebhook(message.body, headers, trust), /too old/);
  }
});

test('refuses changed, foreign, incomplete and replayed requests', async () => {
  const good = await signed();
  const others = generateKeyPairSync('ed25519').publicKey;
  const trust = { secrets: [secret], publicKeys: [whpk(publicKey)] };
  for (const [what, text, headers, by] of [
    ['changed', `${body} `, good, trust],
    ['under another id', body, { ...good, 'webhook-id': 'evt_2' }, trust],
    ['too old', body, await signed(nowS - 301), trust],
    ['too far ahead', body, await signed(nowS + 330), trust],
    ['a timestamp in words', body, { ...good, 'webhook-timestamp': '1e9' }, trust],
    ['signed by nobody', body, { ...good, 'webhook-signature': 'v1, v2,AAAA v1a,AAAA v1,*' }, trust],
    ['without signature', body, { ...good, 'webhook-signature': undefined }, trust],
    [
      'two signatures headers',
      body,
      { ...good, 'webhook-signature': [good['webhook-signature'], 'v1,x'] },
      trust,
    ],
    ['of another secret', body, good, { secrets: [`whsec_${randomBytes(24).toString('base64')}`] }],
    ['of another team', body, good, { publicKeys: [whpk(others)] }],
  ] as const) {
    await assert.rejects(verifyWebhook(text, headers, by), NotVerified, what);
  }
});

test('throws a TypeError for missing or malformed keys', async () => {
  const headers = await signed();
  await assert.rejects(verifyWebhook(body, headers, {}), TypeError);
  await assert.rejects(verifyWebhook(body, headers, { secrets: ['whsec_*'] }), TypeError);
});
