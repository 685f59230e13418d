/** Feeds, and the addresses that they had before. */
import assert from 'node:assert/strict';
import { type Feed, type FeedSettings, MAX_FEEDS } from '../../model/messages/feed.ts';
import type { Store } from '../store.ts';
import { allSteps, caseWith, makeWorkflow, type Open, publishRun } from './setup.ts';

const DAY_MS = 86_400_000;
const SETTINGS: FeedSettings = { title: null, filter: null, entries: 'record', windowMs: DAY_MS, most: 50 };
type Place = { teamId: string; workflowId: string };

export function testFeeds(open: Open): void {
  const it = caseWith(open);

  it('creates feeds of a workflow, and finds them by their tokens', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const first = await make(store, at, 'a');
    assert.deepEqual(first, {
      ...at,
      ...SETTINGS,
      id: first.id,
      token: 'sealed a',
      revision: 1,
      createdAt: store.now(),
      changedAt: store.now(),
    });
    advance(1_000);
    const second = await make(store, at, 'b', { title: 'People', filter: 'id == "1"', entries: 'version' });
    const list = await store.feeds.list(at);
    assert.deepEqual(list, [first, second]);
    assert.deepEqual(await store.feeds.get({ ...at, id: second.id }), second);
    const { teamId } = at;
    const state = { version: 0, publishedAt: null, erasures: 0, rewrites: 0 };
    assert.deepEqual(await store.feeds.open({ teamId, hash: 'a' }), { ...first, ...state });
    assert.equal(await store.feeds.open({ teamId, hash: 'c' }), undefined);
    await publishRun(store, at, { a: 'Ada' });
    const opened = await store.feeds.open({ teamId, hash: 'b' });
    assert.deepEqual(opened, { ...second, ...state, version: 1, publishedAt: store.now() });
  });

  it('keeps feeds apart by team and workflow', async ({ store }) => {
    const at = await makeWorkflow(store);
    const beside = await makeWorkflow(store, { id: 'other' });
    const away = await makeWorkflow(store, { team: 'other' });
    const { id } = await make(store, at, 'a');
    for (const other of [beside, away]) {
      assert.deepEqual(await store.feeds.list(other), []);
      assert.equal(await store.feeds.get({ ...other, id }), undefined);
      assert.equal(await store.feeds.change({ ...other, id, settings: { title: 'x' } }), undefined);
      assert.equal(await store.feeds.rotate({ ...other, id, token: tokenOf('b') }), undefined);
      assert.equal(await store.feeds.revoke({ ...other, id }), false);
    }
    assert.equal(await store.feeds.open({ teamId: away.teamId, hash: 'a' }), undefined);
    assert.equal((await store.feeds.list(at)).length, 1);
  });

  it('creates no more than the limit of a workflow in simultaneous calls', async ({ store }) => {
    const at = await makeWorkflow(store);
    for (let n = 1; n < MAX_FEEDS; n++) await make(store, at, `${n}`);
    const made = await Promise.all(
      ['x', 'y', 'z'].map((hash) => store.feeds.create({ ...at, ...SETTINGS, token: tokenOf(hash) })),
    );
    assert.deepEqual(made.map(({ outcome }) => outcome).sort(), ['created', 'full', 'full']);
    const beside = await makeWorkflow(store, { id: 'other' });
    await make(store, beside, 'b');
  });

  it('creates a feed once for an idempotency key', async ({ store }) => {
    const at = await makeWorkflow(store);
    const call = (hash: string, sent = 'same') =>
      store.feeds.create({
        ...at,
        ...SETTINGS,
        token: tokenOf(hash),
        idempotencyKey: { key: 'k', sent },
      });
    const first = await call('a');
    assert.deepEqual(await call('b'), first);
    assert.equal(await store.feeds.open({ teamId: at.teamId, hash: 'b' }), undefined);
    await assert.rejects(call('c', 'different'), { code: 'idempotency_key_reused' });
    assert.ok('feed' in first && first.feed !== undefined);
    await store.feeds.revoke({ ...at, id: first.feed.id });
    assert.deepEqual(await call('d'), { outcome: 'created', feed: undefined });
  });

  it('changes settings, unless they were changed since they were read', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const feed = await make(store, at, 'a');
    const { id } = feed;
    advance(1_000);
    const changed = await store.feeds.change({
      ...at,
      id,
      settings: { filter: 'true', most: 9 },
      expected: 1,
    });
    assert.deepEqual(changed, { ...feed, filter: 'true', most: 9, revision: 2, changedAt: store.now() });
    assert.equal(await store.feeds.change({ ...at, id, settings: { most: 1 }, expected: 1 }), 'stale');
    const reset = await store.feeds.change({ ...at, id, settings: { filter: null } });
    assert.deepEqual(reset, { ...feed, most: 9, revision: 3, changedAt: store.now() });
  });

  it('ends an address when it is rotated or revoked', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const feed = await make(store, at, 'a');
    const rotated = await store.feeds.rotate({ ...at, id: feed.id, token: tokenOf('b') });
    assert.deepEqual(rotated, { ...feed, token: 'sealed b' });
    assert.equal(await store.feeds.open({ teamId, hash: 'a' }), 'ended');
    assert.equal(await idAt(store, teamId, 'b'), feed.id);
    assert.equal(await store.feeds.revoke({ ...at, id: feed.id }), true);
    assert.equal(await store.feeds.revoke({ ...at, id: feed.id }), false);
    assert.equal(await store.feeds.open({ teamId, hash: 'b' }), 'ended');
    assert.deepEqual(await store.feeds.list(at), []);
  });

  it('forgets ended addresses in steps, the oldest first', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    for (const hash of ['a', 'b', 'c']) {
      const { id } = await make(store, at, hash);
      await store.feeds.revoke({ ...at, id });
      advance(1_000);
    }
    const olderMs = 10_000;
    assert.deepEqual(await store.feeds.prune({ teamId, olderMs, limit: 1 }), {
      done: true,
      at: store.now() + 7_000,
    });
    advance(8_000);
    assert.equal(await allSteps(store.feeds.prune, { teamId, olderMs, limit: 1 }), 3);
    const found = await Promise.all(['a', 'b', 'c'].map((hash) => store.feeds.open({ teamId, hash })));
    assert.deepEqual(found, [undefined, undefined, 'ended']);
  });

  it('finds no feed of a workflow that is unknown or archived', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId, workflowId } = at;
    const { id } = await make(store, at, 'a');
    await store.workflows.archive({ teamId, ids: [workflowId] });
    assert.equal(await store.feeds.open({ teamId, hash: 'a' }), undefined);
    const token = tokenOf('b');
    assert.deepEqual(await store.feeds.create({ ...at, ...SETTINGS, token }), { outcome: 'not_found' });
    const unknown = { teamId, workflowId: 'unknown' };
    assert.deepEqual(await store.feeds.create({ ...unknown, ...SETTINGS, token }), { outcome: 'not_found' });
    await makeWorkflow(store);
    assert.equal(await idAt(store, teamId, 'a'), id);
  });
}

function tokenOf(hash: string) {
  return { hash, sealed: `sealed ${hash}` };
}

async function make(
  store: Store,
  at: Place,
  hash: string,
  changes: Partial<FeedSettings> = {},
): Promise<Feed> {
  const made = await store.feeds.create({ ...at, ...SETTINGS, ...changes, token: tokenOf(hash) });
  assert.ok(made.outcome === 'created' && made.feed !== undefined);
  return made.feed;
}

async function idAt(store: Store, teamId: string, hash: string): Promise<string | undefined> {
  const feed = await store.feeds.open({ teamId, hash });
  return typeof feed === 'object' ? feed.id : undefined;
}
