/** Times of last use of keys, with a real store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import type { Store } from '../store/store.ts';
import { Authenticator, hashKey, mintKey } from './keys.ts';
import { LastUsed } from './usage.ts';

async function keyOf(store: Store) {
  const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
  return mintKey(store, { teamId, name: '', scopes: ['read'], expiresAt: null });
}

/** A store that counts these writes, and makes them fail on request. */
function counted(store: Store) {
  const seen = { writes: 0, fails: false };
  const used: Store['keys']['used'] = async (input) => {
    seen.writes += 1;
    if (seen.fails) throw new Error('the disk is full');
    await store.keys.used(input);
  };
  return { seen, store: { ...store, keys: { ...store.keys, used } } };
}

test('requests write nothing; their recorded times are written together', async (t) => {
  const opened = await openEmptyStore(t);
  const { seen, store } = counted(opened.store);
  const { key, record } = await keyOf(store);
  const lastUsed = new LastUsed({ store, log: silentLogger, random: () => 0 });
  const authenticator = new Authenticator(store, lastUsed);
  const usedAt = async () => (await store.keys.list({ limit: 100 }))[0]?.lastUsedAt;
  await lastUsed.tick();
  for (let count = 0; count < 50; count += 1) assert.ok(await authenticator.authenticate(hashKey(key)));
  assert.equal(await authenticator.authenticate(hashKey('wrong')), undefined);
  assert.deepEqual([seen.writes, await usedAt()], [0, null]);
  await lastUsed.tick();
  await lastUsed.tick();
  assert.equal(seen.writes, 1);
  assert.ok(Number(await usedAt()) >= record.createdAt);
  authenticator.close();
});

test('retries failed writes, at the latest on `stop`', async (t) => {
  const opened = await openEmptyStore(t);
  const { seen, store } = counted(opened.store);
  const { record } = await keyOf(store);
  const lastUsed = new LastUsed({ store, log: silentLogger, random: () => 0 });
  seen.fails = true;
  lastUsed.note(record.id);
  await lastUsed.tick();
  assert.equal((await store.keys.list({ limit: 100 }))[0]?.lastUsedAt, null);
  seen.fails = false;
  await lastUsed.stop();
  assert.notEqual((await store.keys.list({ limit: 100 }))[0]?.lastUsedAt, null);
});
