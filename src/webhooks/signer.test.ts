/** Many signatures at once, on a real thread, and on threads that die. */
import assert from 'node:assert/strict';
import { createSecretKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { type Signable, type SigningKeys, signatures } from './sign.ts';
import { Signer } from './signer.ts';

const { privateKey } = generateKeyPairSync('ed25519');
const mine: SigningKeys = { secrets: [randomBytes(32), randomBytes(32)], privateKey };
const other: SigningKeys = { secrets: [randomBytes(32)], privateKey: null };

function messages(count: number): Signable[] {
  return Array.from({ length: count }, (_, place) => ({
    id: `evt_${place}`,
    timestamp: place,
    body: '{"ë":1}',
  }));
}

function setUp(t: TestContext, open?: () => Worker): Signer {
  const signer = new Signer(open);
  t.after(() => signer.close());
  return signer;
}

test('signs many at once, each with its own keys, as one alone', async (t) => {
  const signer = setUp(t);
  const many = messages(200);
  const keys = (place: number) => (place % 3 === 0 ? other : mine);
  const signed = await Promise.all(many.map((message, place) => signer.sign(message, keys(place))));
  assert.deepEqual(
    signed,
    many.map((message, place) => signatures(message, keys(place))),
  );
  const [first] = many as [Signable];
  assert.equal(await signer.sign(first, mine), signatures(first, mine));
});

test('starts no thread for one message after the other', async (t) => {
  const signer = setUp(t, () => assert.fail('A thread was started'));
  for (const message of messages(3))
    assert.equal(await signer.sign(message, mine), signatures(message, mine));
});

test('signs all the same when a thread dies with what it was given, and starts another one', async (t) => {
  let started = 0;
  const signer = setUp(t, () => {
    started += 1;
    return new Worker('require("node:worker_threads").parentPort.once("message", () => process.exit())', {
      eval: true,
    });
  });
  for (const round of [1, 2]) {
    const many = messages(100);
    assert.deepEqual(
      await Promise.all(many.map((message) => signer.sign(message, mine))),
      many.map((message) => signatures(message, mine)),
    );
    assert.ok(started >= round);
  }
});

test('fails only those of many that cannot be signed', async (t) => {
  const signer = setUp(t);
  const unusable: SigningKeys = { secrets: [], privateKey: createSecretKey(randomBytes(32)) };
  const [first, second] = messages(2) as [Signable, Signable];
  const signed = await Promise.allSettled([signer.sign(first, unusable), signer.sign(second, mine)]);
  assert.equal(signed[0].status, 'rejected');
  assert.deepEqual(signed[1], { status: 'fulfilled', value: signatures(second, mine) });
});
