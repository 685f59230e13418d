/** Sessions, cached by several nodes. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { MAX_SESSIONS_OF_KEY, RENEW_AFTER_MS, SESSION_MS } from '../model/team.ts';
import { silentLogger } from '../observe/log.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { mintKey } from './keys.ts';
import { Sessions, type Started } from './sessions.ts';

/** Two nodes on one database, and a signed-in user. */
async function twoNodes(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-sessions-'));
  let nowMs = Date.UTC(2026, 0, 1);
  const open = () =>
    openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
      clock: () => nowMs,
      publicUrl: () => '',
      log: silentLogger,
      synchronous: 'OFF',
    });
  const stores = [await open(), await open()] as const;
  const nodes = stores.map((store) => new Sessions(store)) as [Sessions, Sessions];
  t.after(async () => {
    for (const node of nodes) node.close();
    for (const store of stores) await store.close();
    await rm(directory, { recursive: true });
  });
  const [store] = stores;
  const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
  const { key, record } = await mintKey(store, { teamId, name: '', scopes: ['read'], expiresAt: null });
  const { secret } = (await nodes[0].begin(key)) as Started;
  const advance = (ms: number) => {
    nowMs += ms;
  };
  return { stores, nodes, key: record, secretKey: key, secret, advance };
}

/** Another node's commit is noticed within about 250 ms; until then, the cached value is used. */
async function untilGone(node: Sessions, secret: string): Promise<void> {
  while ((await node.find(secret)) !== undefined) await new Promise(setImmediate);
}

test('remembers the team of a session while keys change, until the session has ended', async (t) => {
  const { nodes, stores, key, secret } = await twoNodes(t);
  const { teamId } = key;
  await mintKey(stores[0], { teamId, name: '', scopes: ['read'], expiresAt: null });
  assert.equal(nodes[0].teamOf(secret), teamId);
  assert.equal(nodes[1].teamOf(secret), undefined);
  await nodes[0].end(secret);
  await nodes[0].find(secret);
  assert.equal(nodes[0].teamOf(secret), undefined);
});

test('a session ended on one node ends on the others', async (t) => {
  const { nodes, secret } = await twoNodes(t);
  for (const node of nodes) assert.notEqual(await node.find(secret), undefined);
  await nodes[0].end(secret);
  assert.equal(await nodes[0].find(secret), undefined);
  await untilGone(nodes[1], secret);
});

test('a key revoked on one node ends its sessions on the others', async (t) => {
  const { stores, nodes, secret, key } = await twoNodes(t);
  for (const node of nodes) assert.notEqual(await node.find(secret), undefined);
  await stores[0].keys.revoke({ id: key.id });
  assert.equal(await nodes[0].find(secret), undefined);
  await untilGone(nodes[1], secret);
});

test('the oldest of too many sessions of a key ends on nodes that have cached it', async (t) => {
  const { nodes, secret, advance, secretKey } = await twoNodes(t);
  for (const node of nodes) assert.notEqual(await node.find(secret), undefined);
  advance(1);
  for (let n = 0; n < MAX_SESSIONS_OF_KEY; n++) await nodes[0].begin(secretKey);
  assert.equal(await nodes[0].find(secret), undefined);
  await untilGone(nodes[1], secret);
});

test('a session renewed on one node continues on nodes that have cached the old expiry', async (t) => {
  const { nodes, secret, advance } = await twoNodes(t);
  for (const node of nodes) await node.find(secret);
  advance(SESSION_MS - 1);
  assert.equal((await nodes[0].find(secret))?.isRenewed, true);
  advance(RENEW_AFTER_MS - 1);
  assert.equal((await nodes[1].find(secret))?.isRenewed, false);
  advance(SESSION_MS);
  assert.equal(await nodes[1].find(secret), undefined);
});

test('a session is written at most every five minutes, however often it is used', async (t) => {
  const { stores, nodes, secret, advance } = await twoNodes(t);
  const [node] = nodes;
  const { renew } = stores[0].sessions;
  let written = 0;
  const counting: Store['sessions']['renew'] = (input) => {
    written += 1;
    return renew(input);
  };
  Object.assign(stores[0].sessions, { renew: counting });
  for (let minute = 0; minute < 60; minute++) {
    advance(60_000);
    await node.find(secret);
    await node.find(secret);
  }
  assert.equal(written, 12);
});
