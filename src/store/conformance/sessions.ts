/** Sessions of the dashboard, and sign-in links. */
import assert from 'node:assert/strict';
import type { ApiKey } from '../../model/team.ts';
import { MAX_SESSIONS_OF_KEY } from '../../model/team.ts';
import type { Store } from '../store.ts';
import { caseWith, type Open } from './setup.ts';

const HOUR_MS = 3_600_000;

export function testSessions(open: Open): void {
  const it = caseWith(open);

  it('starts a session of a key, which is valid until it expires', async ({ store, advance }) => {
    const key = await makeKey(store);
    const session = await store.sessions.begin({ keyId: key.id, hash: 'a', forMs: HOUR_MS });
    assert.deepEqual(session, {
      teamId: key.teamId,
      keyId: key.id,
      createdAt: store.now(),
      expiresAt: store.now() + HOUR_MS,
    });
    assert.deepEqual(await store.sessions.byHash({ hash: 'a' }), { session, key });
    assert.equal(await store.sessions.byHash({ hash: 'b' }), undefined);
    advance(HOUR_MS);
    assert.equal(await store.sessions.byHash({ hash: 'a' }), undefined);
  });

  it('starts no session of an unknown, revoked or expired key', async ({ store, advance }) => {
    const [revoked, expired] = [await makeKey(store), await makeKey(store, { expiresAt: store.now() + 1 })];
    await store.keys.revoke({ id: revoked.id });
    advance(1);
    for (const keyId of [revoked.id, expired.id, 'key_x']) {
      assert.equal(await store.sessions.begin({ keyId, hash: keyId, forMs: HOUR_MS }), undefined);
      assert.equal(await store.sessions.makeLink({ keyId, hash: keyId, forMs: HOUR_MS }), undefined);
      assert.equal(await store.sessions.byHash({ hash: keyId }), undefined);
    }
  });

  it('returns a session with the state of its key', async ({ store }) => {
    const { id: keyId } = await makeKey(store);
    await store.sessions.begin({ keyId, hash: 'a', forMs: HOUR_MS });
    await store.keys.revoke({ id: keyId });
    const found = await store.sessions.byHash({ hash: 'a' });
    assert.equal(found?.key.revokedAt, store.now());
  });

  it('extends a session, never shortens it, and does not extend an expired one', async ({
    store,
    advance,
  }) => {
    const { id: keyId } = await makeKey(store);
    await store.sessions.begin({ keyId, hash: 'a', forMs: HOUR_MS });
    advance(HOUR_MS / 2);
    const expiresAt = store.now() + HOUR_MS;
    assert.equal((await store.sessions.renew({ hash: 'a', forMs: HOUR_MS }))?.expiresAt, expiresAt);
    assert.equal((await store.sessions.renew({ hash: 'a', forMs: 1 }))?.expiresAt, expiresAt);
    assert.equal((await store.sessions.byHash({ hash: 'a' }))?.session.expiresAt, expiresAt);
    advance(HOUR_MS);
    assert.equal(await store.sessions.renew({ hash: 'a', forMs: HOUR_MS }), undefined);
    assert.equal(await store.sessions.renew({ hash: 'b', forMs: HOUR_MS }), undefined);
  });

  it('ends a session; ending it twice is harmless', async ({ store }) => {
    const { id: keyId } = await makeKey(store);
    await store.sessions.begin({ keyId, hash: 'a', forMs: HOUR_MS });
    await store.sessions.end({ hash: 'a' });
    assert.equal(await store.sessions.byHash({ hash: 'a' }), undefined);
    await store.sessions.end({ hash: 'a' });
  });

  it('starts one session per link, and none after the link has expired', async ({ store, advance }) => {
    const { id: keyId, teamId } = await makeKey(store);
    const made = await store.sessions.makeLink({ keyId, hash: 'link', forMs: HOUR_MS });
    assert.deepEqual(made, { teamId, expiresAt: store.now() + HOUR_MS });
    const follow = (link: string, hash: string) => store.sessions.redeem({ link, hash, forMs: HOUR_MS });
    const both = await Promise.all([follow('link', 'a'), follow('link', 'b')]);
    assert.deepEqual(
      both.flatMap((session) => session?.keyId ?? []),
      [keyId],
    );
    assert.equal(await follow('link', 'c'), undefined);
    assert.equal(await follow('other', 'c'), undefined);

    await store.sessions.makeLink({ keyId, hash: 'late', forMs: HOUR_MS });
    await store.sessions.makeLink({ keyId, hash: 'revoked', forMs: 2 * HOUR_MS });
    advance(HOUR_MS);
    assert.equal(await follow('late', 'd'), undefined);
    await store.keys.revoke({ id: keyId });
    assert.equal(await follow('revoked', 'e'), undefined);
  });

  it('keeps at most the newest hundred sessions of a key', async ({ store, advance }) => {
    const [key, other] = [await makeKey(store), await makeKey(store)];
    await store.sessions.begin({ keyId: other.id, hash: 'other', forMs: HOUR_MS });
    for (let n = 0; n <= MAX_SESSIONS_OF_KEY; n++) {
      await store.sessions.begin({ keyId: key.id, hash: `${n}`, forMs: HOUR_MS });
      advance(1);
    }
    assert.equal(await store.sessions.byHash({ hash: '0' }), undefined);
    for (const hash of ['1', `${MAX_SESSIONS_OF_KEY}`, 'other']) {
      assert.notEqual(await store.sessions.byHash({ hash }), undefined, hash);
    }
  });

  it('prunes expired sessions and links in steps', async ({ store, advance }) => {
    const { id: keyId } = await makeKey(store);
    for (const hash of ['a', 'b', 'c']) {
      await store.sessions.begin({ keyId, hash, forMs: 1 });
      await store.sessions.makeLink({ keyId, hash, forMs: 1 });
    }
    await store.sessions.begin({ keyId, hash: 'stays', forMs: HOUR_MS });
    advance(1);
    assert.deepEqual(await store.sessions.prune({ limit: 2 }), { done: false });
    assert.deepEqual(await store.sessions.prune({ limit: 2 }), { done: true });
    // No rows of the expired sessions and links are left, so their hashes can be used again.
    assert.notEqual(await store.sessions.begin({ keyId, hash: 'a', forMs: 1 }), undefined);
    assert.notEqual(await store.sessions.makeLink({ keyId, hash: 'a', forMs: 1 }), undefined);
    assert.notEqual(await store.sessions.byHash({ hash: 'stays' }), undefined);
  });

  it('ends the sessions and links of a retired team', async ({ store }) => {
    const key = await makeKey(store);
    await store.sessions.begin({ keyId: key.id, hash: 'a', forMs: HOUR_MS });
    await store.sessions.makeLink({ keyId: key.id, hash: 'link', forMs: HOUR_MS });
    await store.teams.retire({ teamId: key.teamId, force: false });
    assert.equal(await store.sessions.byHash({ hash: 'a' }), undefined);
    assert.equal(await store.sessions.redeem({ link: 'link', hash: 'b', forMs: HOUR_MS }), undefined);
    while (!(await store.teams.delete({ teamId: key.teamId, limit: 5 })).done);
    assert.deepEqual(await store.teams.retired({ limit: 100 }), []);
  });
}

let made = 0;

async function makeKey(store: Store, changes: { expiresAt?: number } = {}): Promise<ApiKey> {
  const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
  made += 1;
  return store.keys.create({
    teamId,
    name: 'laptop',
    hash: `key ${made}`,
    prefix: 'fh_',
    scopes: ['read'],
    expiresAt: null,
    ...changes,
  });
}
