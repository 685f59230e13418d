/** What is signed once, and what is not. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { test } from 'node:test';
import { createSignatureCache } from './sign-thread.ts';

const { privateKey: mine } = generateKeyPairSync('ed25519');
const { privateKey: other } = generateKeyPairSync('ed25519');

function setUp() {
  let made = 0;
  const signOnce = createSignatureCache((content: Buffer, key: KeyObject) => {
    made += 1;
    return sign(null, content, key);
  });
  return { signOnce, made: () => made };
}

test('signs the same content once', () => {
  const { signOnce, made } = setUp();
  const content = Buffer.from('evt_1.1763696437.{"name":"Zoë"}');
  for (let webhook = 0; webhook < 100; webhook += 1) {
    assert.deepEqual(signOnce(Buffer.from(content), mine), sign(null, content, mine));
  }
  assert.equal(made(), 1);
});

test('signs again what was rewritten, what is sent in another second, and with another key', () => {
  const { signOnce, made } = setUp();
  const contents = ['evt_1.1.{"name":"Ann"}', 'evt_1.1.{"name":"xxx"}', 'evt_1.2.{"name":"Ann"}'];
  for (const content of contents.map((text) => Buffer.from(text))) {
    for (const key of [mine, other]) assert.deepEqual(signOnce(content, key), sign(null, content, key));
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
