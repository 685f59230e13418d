/** The instance, teams and keys. */
import assert from 'node:assert/strict';
import { Problem } from '../../model/error.ts';
import { caseWith, type Open } from './setup.ts';

export function testTeams(open: Open): void {
  const it = caseWith(open);

  it('lists the keys of a team, or of all teams, in pages', async ({ store }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'default' });
    const { id: other } = await store.teams.ensure({ slug: 'other' });
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) {
      const of = n % 2 === 0 ? teamId : other;
      const key = { name: '', prefix: 'fh', scopes: ['read'] as const, expiresAt: null };
      ids.push((await store.keys.create({ ...key, teamId: of, hash: `${n}` })).id);
    }
    const listed = async (input: Partial<Parameters<typeof store.keys.list>[0]>) =>
      (await store.keys.list({ limit: 10, ...input })).map(({ id }) => ids.indexOf(id));
    assert.deepEqual(await listed({}), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(await listed({ limit: 1 }), [0]);
    assert.deepEqual(await listed({ teamId }), [0, 2, 4]);
    assert.deepEqual(await listed({ teamId, limit: 2 }), [0, 2]);
    assert.deepEqual(await listed({ teamId, limit: 2, after: ids[2] }), [4]);
    assert.equal((await store.keys.get({ teamId, id: ids[2] as string }))?.id, ids[2]);
    assert.equal(await store.keys.get({ teamId, id: ids[1] as string }), undefined);
  });

  it('keeps the first value that is stored under a name', async ({ store }) => {
    assert.equal(await store.instance.claim({ name: 'fingerprint', value: 'a' }), 'a');
    assert.equal(await store.instance.claim({ name: 'fingerprint', value: 'b' }), 'a');
    assert.equal(await store.instance.claim({ name: 'other', value: 'b' }), 'b');
  });

  it('gives a chore to one node at a time', async ({ store, advance }) => {
    const take = (nodeId: string) => store.instance.lease({ name: 'sweep', nodeId, forMs: 1_000 });
    assert.equal(await take('a'), true);
    advance(999);
    assert.equal(await take('a'), true, 'the holder keeps it');
    assert.equal(await store.instance.lease({ name: 'dust', nodeId: 'a', forMs: 1_000 }), true);
  });

  it('creates a team once in simultaneous calls', async ({ store }) => {
    const teams = await Promise.all(Array.from({ length: 5 }, () => store.teams.ensure({ slug: 'acme' })));
    assert.equal(new Set(teams.map((team) => team.id)).size, 1);
    assert.match(teams[0]?.id ?? '', /^team_/);
    assert.deepEqual(await store.teams.bySlug({ slug: 'acme' }), teams[0]);
    assert.deepEqual(await store.teams.get({ teamId: teams[0]?.id ?? '' }), teams[0]);
  });

  it('creates one key per idempotency key, for a day, and refuses it for another request', async ({
    store,
    advance,
  }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const other = await store.teams.ensure({ slug: 'other' });
    let made = 0;
    const create = (sent: string, of = teamId) => {
      made += 1;
      const idempotencyKey = { key: 'k', sent };
      const wanted = { name: '', prefix: 'fh_', scopes: [], expiresAt: null, idempotencyKey };
      return store.keys.create({ ...wanted, teamId: of, hash: `hash ${made}` });
    };
    const [first, ...twins] = await Promise.all([create('a'), create('a'), create('a')]);
    for (const twin of twins) assert.deepEqual(twin, first);
    assert.equal((await store.keys.list({ teamId, limit: 100 })).length, 1);
    await assert.rejects(
      create('b'),
      (error) => error instanceof Problem && error.code === 'idempotency_key_reused',
    );
    assert.equal((await store.keys.list({ teamId, limit: 100 })).length, 1);
    assert.notEqual((await create('b', other.id)).id, first.id);
    advance(24 * 3_600_000 + 1);
    assert.notEqual((await create('b')).id, first.id);
    await assert.rejects(create('a'), Problem);
  });

  it('lists teams oldest first, and finds no team with an unknown name', async ({ store, advance }) => {
    await store.teams.ensure({ slug: 'b' });
    advance(1);
    await store.teams.ensure({ slug: 'a' });
    assert.deepEqual(
      (await store.teams.list({ limit: 100 })).map((team) => team.slug),
      ['b', 'a'],
    );
    assert.equal(await store.teams.bySlug({ slug: 'c' }), undefined);
    assert.equal(await store.teams.get({ teamId: 'team_x' }), undefined);
  });

  it('keeps the first signing key of a team', async ({ store }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const first = { teamId, id: 'sk_1', publicKey: 'AA', privateKey: 'sealed', createdAt: 5 };
    assert.deepEqual(await store.teams.ensureSigningKey(first), first);
    assert.deepEqual(await store.teams.ensureSigningKey({ ...first, id: 'sk_2', publicKey: 'BB' }), first);
    assert.deepEqual(await store.teams.signingKeys({ teamId }), [first]);
    assert.deepEqual(await store.teams.signingKeys({ teamId: 'team_x' }), []);
  });

  it('stores a key once by its hash', async ({ store }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const input = {
      teamId,
      name: 'laptop',
      hash: 'ff',
      prefix: 'fh_abcd',
      scopes: ['read'] as const,
      expiresAt: 9,
    };
    const key = await store.keys.create(input);
    assert.deepEqual(key, {
      ...input,
      scopes: ['read'],
      id: key.id,
      createdAt: store.now(),
      revokedAt: null,
      lastUsedAt: null,
      watchedFrom: store.now(),
    });
    assert.deepEqual(await store.keys.create({ ...input, name: 'again', scopes: ['admin'] }), key);
    assert.deepEqual(await store.keys.byHash({ hash: 'ff' }), key);
    assert.equal(await store.keys.byHash({ hash: 'fe' }), undefined);
  });

  it('lists keys of one team and of all teams, including revoked ones', async ({ store, advance }) => {
    const ids: string[] = [];
    for (const slug of ['a', 'b']) {
      const { id: teamId } = await store.teams.ensure({ slug });
      const key = { teamId, name: slug, hash: slug, prefix: slug, scopes: [], expiresAt: null };
      ids.push((await store.keys.create(key)).id);
      advance(1);
    }
    await store.keys.revoke({ id: ids[0] ?? '' });
    assert.deepEqual(
      (await store.keys.list({ limit: 100 })).map((key) => key.id),
      ids,
    );
    const team = await store.teams.bySlug({ slug: 'b' });
    assert.deepEqual(
      (await store.keys.list({ teamId: team?.id ?? '', limit: 100 })).map((key) => key.id),
      [ids[1]],
    );
  });

  it('revokes a key at the time of the first call', async ({ store, advance }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const key = { teamId, name: 'x', hash: 'x', prefix: 'x', scopes: [], expiresAt: null };
    const { id } = await store.keys.create(key);
    const at = store.now();
    assert.equal((await store.keys.revoke({ id }))?.revokedAt, at);
    advance(10);
    assert.equal((await store.keys.revoke({ id }))?.revokedAt, at);
    assert.equal(await store.keys.revoke({ id: 'key_x' }), undefined);
  });

  it('does not revoke a key of another team', async ({ store }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const other = await store.teams.ensure({ slug: 'other' });
    const key = { teamId, name: 'x', hash: 'x', prefix: 'x', scopes: [], expiresAt: null };
    const { id } = await store.keys.create(key);
    assert.equal(await store.keys.revoke({ id, teamId: other.id }), undefined);
    assert.equal((await store.keys.byHash({ hash: 'x' }))?.revokedAt, null);
    assert.equal((await store.keys.revoke({ id, teamId }))?.id, id);
  });

  it('rotates a key immediately, or with an overlap that never extends its life', async ({
    store,
    advance,
  }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const expiresAt = store.now() + 100;
    const key = { teamId, name: 'x', prefix: 'a', scopes: ['read'] as const, expiresAt };
    const first = await store.keys.create({ ...key, hash: 'a' });
    const next = { teamId, prefix: 'b', overlapMs: 0 };

    const second = await store.keys.rotate({ ...next, id: first.id, hash: 'b' });
    assert.deepEqual(second, { ...first, id: second?.id, hash: 'b', prefix: 'b' });
    assert.equal((await store.keys.byHash({ hash: 'a' }))?.revokedAt, store.now());

    const third = await store.keys.rotate({ ...next, id: second?.id ?? '', hash: 'c', overlapMs: 40 });
    assert.equal((await store.keys.byHash({ hash: 'b' }))?.expiresAt, store.now() + 40);
    await store.keys.rotate({ ...next, id: third?.id ?? '', hash: 'd', overlapMs: 1_000 });
    assert.equal((await store.keys.byHash({ hash: 'c' }))?.expiresAt, expiresAt);

    assert.equal(await store.keys.rotate({ ...next, id: first.id, hash: 'e' }), undefined);
    advance(100);
    assert.equal(await store.keys.rotate({ ...next, id: third?.id ?? '', hash: 'e' }), undefined);
    const other = await store.teams.ensure({ slug: 'other' });
    assert.equal(
      await store.keys.rotate({ ...next, teamId: other.id, id: third?.id ?? '', hash: 'e' }),
      undefined,
    );
    assert.equal(await store.keys.byHash({ hash: 'e' }), undefined);
  });

  it('stores when keys were used, and never an earlier time', async ({ store, advance }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const make = (hash: string) =>
      store.keys.create({ teamId, name: '', hash, prefix: '', scopes: [], expiresAt: null });
    const [one, other] = [await make('a'), await make('b')];
    advance(100);
    const at = store.now();
    await store.keys.used({
      keys: [
        { id: other.id, at },
        { id: one.id, at: at - 1 },
        { id: 'key_x', at },
      ],
    });
    await store.keys.used({ keys: [{ id: one.id, at: at - 50 }] });
    await store.keys.used({ keys: [] });
    const found = await store.keys.list({ teamId, limit: 100 });
    assert.deepEqual(
      found.map(({ lastUsedAt }) => lastUsedAt),
      [at - 1, at],
    );
  });
}
