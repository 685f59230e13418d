/** Sealed values can be opened only with the same key and context. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createSealer, mac } from './seal.ts';

const sealer = createSealer(randomBytes(32));

test('opens sealed text and bytes, even empty', () => {
  for (const plain of ['', 'whsec_abc', 'naïve ☂', randomBytes(64)]) {
    assert.deepEqual(sealer.open(sealer.seal(plain, 'a'), 'a'), Buffer.from(plain as string));
  }
});

test('seals the same text differently each time, and never reveals it', () => {
  const first = sealer.seal('a long enough secret', 'a');
  assert.notEqual(first, sealer.seal('a long enough secret', 'a'));
  assert.match(first, /^sealed1\.[0-9a-f]{16}\.[\w-]+$/);
  assert.ok(!first.includes(Buffer.from('a long enough secret').toString('base64url')));
});

test('refuses a different context, a changed text and a different key, each with its own sentence', () => {
  const sealed = sealer.seal('secret', 'webhook-secret/team_1');
  assert.throws(
    () => sealer.open(sealed, 'webhook-secret/team_2'),
    /changed, or was sealed for a different context/,
  );
  const last = sealed.at(-2) === 'A' ? 'B' : 'A';
  assert.throws(
    () => sealer.open(`${sealed.slice(0, -2)}${last}${sealed.at(-1)}`, 'webhook-secret/team_1'),
    /changed/,
  );
  assert.throws(
    () => createSealer(randomBytes(32)).open(sealed, 'webhook-secret/team_1'),
    /another encryption key/,
  );
  for (const junk of ['', 'x', 'sealed2.a.b', 'sealed1..', `${sealed}.x`]) {
    assert.throws(() => sealer.open(junk, 'a'), /format that this version/);
  }
});

test('a fingerprint is stable and differs between keys', () => {
  const key = Buffer.alloc(32, 7);
  assert.equal(createSealer(key).fingerprint, createSealer(Buffer.from(key)).fingerprint);
  assert.notEqual(createSealer(key).fingerprint, createSealer(Buffer.alloc(32, 8)).fingerprint);
});

test('accepts only keys of 32 bytes', () => {
  assert.throws(() => createSealer(randomBytes(16)), /32 bytes long, found 16/);
});

test('each context has its own stable key for keyed hashes', () => {
  const [sealer, other] = [createSealer(Buffer.alloc(32, 1)), createSealer(Buffer.alloc(32, 2))];
  const hash = mac(sealer.macKey('team_1'), 'ada@example.com');
  assert.match(hash, /^[0-9a-f]{64}$/);
  assert.equal(mac(createSealer(Buffer.alloc(32, 1)).macKey('team_1'), 'ada@example.com'), hash);
  assert.notEqual(mac(sealer.macKey('team_2'), 'ada@example.com'), hash);
  assert.notEqual(mac(other.macKey('team_1'), 'ada@example.com'), hash);
});
