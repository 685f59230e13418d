/** API keys, with a real store. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { openStore } from '../store/open.ts';
import { Authenticator, hashKey, mintKey, storeKey } from './keys.ts';

const directory = await mkdtemp(join(tmpdir(), 'flowhook-keys-'));
let now = 1_000_000;
const open = () =>
  openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
    clock: () => now,
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
const store = await open();
const team = await store.teams.ensure({ slug: 'default' });
const authenticator = new Authenticator(store);
const wanted = { teamId: team.id, name: 'test', scopes: ['read'], expiresAt: null } as const;
after(async () => {
  authenticator.close();
  await store.close();
  await rm(directory, { recursive: true, force: true });
});

test('a new key authenticates its team with its scopes, and only its hash is stored', async () => {
  const { key, record } = await mintKey(store, wanted);
  assert.partialDeepStrictEqual(await authenticator.authenticate(hashKey(key)), {
    teamId: team.id,
    keyId: record.id,
    scopes: ['read'],
  });
  assert.equal(record.hash, hashKey(key));
  assert.ok(!JSON.stringify(await store.keys.list({ limit: 100 })).includes(key));
});

test('an unknown key authenticates nobody, and a new key works immediately', async () => {
  const key = 'a-key-that-somebody-chose';
  assert.equal(await authenticator.authenticate(hashKey(key)), undefined);
  await storeKey(store, { ...wanted, key });
  assert.equal((await authenticator.authenticate(hashKey(key)))?.teamId, team.id);
});

test('a revoked key stops working immediately, even if it is stored again', async () => {
  const { key, record } = await mintKey(store, wanted);
  assert.ok(await authenticator.authenticate(hashKey(key)));
  await store.keys.revoke({ id: record.id });
  assert.equal(await authenticator.authenticate(hashKey(key)), undefined);
  await storeKey(store, { ...wanted, key });
  assert.equal(await authenticator.authenticate(hashKey(key)), undefined);
});

test('remembers the team of a key while other keys change, until the key is invalid', async () => {
  const { key, record } = await mintKey(store, wanted);
  assert.equal(authenticator.teamOf(hashKey(key)), undefined);
  await authenticator.authenticate(hashKey(key));
  await mintKey(store, wanted);
  assert.equal(authenticator.teamOf(hashKey(key)), team.id);
  await store.keys.revoke({ id: record.id });
  await authenticator.authenticate(hashKey(key));
  assert.equal(authenticator.teamOf(hashKey(key)), undefined);
});

test('a key expires at its time', async () => {
  const { key } = await mintKey(store, { ...wanted, expiresAt: now + 1_000 });
  assert.ok(await authenticator.authenticate(hashKey(key)));
  now += 1_000;
  assert.equal(await authenticator.authenticate(hashKey(key)), undefined);
});

test('a key revoked by another process stops working as soon as the store notices', async () => {
  const { key, record } = await mintKey(store, wanted);
  assert.ok(await authenticator.authenticate(hashKey(key)));
  const noticed = new Promise<void>((resolve) => {
    const unwatch = store.watch(({ keys }) => {
      if (!keys) return;
      unwatch();
      resolve();
    });
  });
  const other = await open();
  await other.keys.revoke({ id: record.id });
  await other.close();
  await noticed;
  assert.equal(await authenticator.authenticate(hashKey(key)), undefined);
});
