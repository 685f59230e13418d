/** Watchers, several stores on one database, and closing. These cases need a store of their own. */

import assert from 'node:assert/strict';
import { Problem } from '../../model/error.ts';
import type { Store } from '../store.ts';
import { type Touched, untouched } from '../transaction.ts';
import { oneDelivery, settle, subscribe } from './sending.ts';
import { caseWith, claimOne, makeJob, makeWorkflow, type Open } from './setup.ts';

export function testWatch(open: Open): void {
  const it = caseWith(open);

  it('notifies watchers of jobs, deliveries and requests to cancel after the commit', async ({ store }) => {
    const at = await makeWorkflow(store);
    const seen: Touched[] = [];
    store.watch((touched) => seen.push(touched));
    const { id } = await makeJob(store, at);
    const jobs = { jobs: true, teams: [at.teamId] };
    assert.deepEqual(seen, [{ ...untouched(), ...jobs }]);
    const webhookId = await subscribe(store, at);
    assert.equal(seen.length, 1);
    await claimOne(store);
    const lanes = [{ teamId: at.teamId, webhookId }];
    assert.deepEqual(seen.at(-1), { ...untouched(), deliveries: true, lanes });
    const before = seen.length;
    await store.jobs.cancel({ teamId: at.teamId, id, by: 'somebody' });
    const cancels = { ...untouched(), cancels: true };
    assert.deepEqual(seen.slice(before), [cancels]);
  });

  it('notifies watchers of keys once about a revoked key and an ended session', async ({ store }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const key = { teamId, name: 'x', hash: 'x', prefix: 'x', scopes: [], expiresAt: null };
    const { id } = await store.keys.create(key);
    await store.sessions.begin({ keyId: id, hash: 'a', forMs: 1_000 });
    let notified = 0;
    const unwatch = store.watch(({ keys }) => {
      if (keys) notified += 1;
    });
    await store.keys.used({ keys: [{ id, at: store.now() }] });
    assert.equal(notified, 0, 'using a key is no change');
    await store.sessions.end({ hash: 'a' });
    await store.sessions.end({ hash: 'a' });
    assert.equal(notified, 1);
    await store.keys.revoke({ id });
    assert.equal(notified, 2);
    unwatch();
    await store.keys.revoke({ id });
    assert.equal(notified, 2, 'after unwatching');
  });

  it('names webhooks with new due deliveries, up to 64', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const ids: string[] = [];
    for (let n = 0; n < 65; n++) {
      ids.push(await subscribe(store, at, n < 64 ? ['workflow_queued', String(n)] : ['workflow_canceled']));
    }
    const last = ids.at(-1) as string;
    const seen: Touched[] = [];
    store.watch((touched) => seen.push(touched));
    const job = await makeJob(store, at);
    assert.deepEqual(new Set(seen.at(-1)?.lanes?.map((lane) => lane.webhookId)), new Set(ids.slice(0, -1)));
    await store.jobs.cancel({ teamId, id: job.id, by: 'somebody' });
    assert.deepEqual(seen.at(-1)?.lanes, [{ teamId, webhookId: last }]);
    await subscribe(store, at, ['workflow_queued', 'one too many']);
    await makeJob(store, at);
    assert.deepEqual([seen.at(-1)?.lanes, seen.at(-1)?.deliveries], [null, true]);
  });

  it('names a webhook that is paused, resumed, changed, removed or replayed to', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    const target = { teamId, id: webhookId };
    const seen: Touched[] = [];
    store.watch((touched) => seen.push(touched));
    const acts = [
      () => store.webhooks.pause({ ...target, reason: 'By hand' }),
      () => store.webhooks.resume(target),
      () => store.webhooks.change({ ...target, settings: { timeoutMs: 1 } }),
      () => store.webhooks.rotate({ ...target, secret: 'second', overlapMs: 1 }),
      () => store.deliveries.replay({ teamId, ids: [due.id] }),
    ];
    for (const act of acts) {
      await act();
      assert.deepEqual(seen.pop()?.lanes, [{ teamId, webhookId }]);
      assert.deepEqual(seen, []);
    }
    await settle(store, due, 1, { state: 'delivered' });
    assert.deepEqual(seen, [], 'settling is not reported');
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    const lanes = [{ teamId, webhookId }];
    assert.deepEqual(seen, [{ ...untouched(), deliveries: true, lanes }]);
  });

  it('notifies the other watchers when one throws', async ({ store }) => {
    let notified = 0;
    store.watch(() => {
      throw new Error('broken');
    });
    store.watch(() => notified++);
    await makeJob(store, await makeWorkflow(store));
    assert.equal(notified, 1);
  });

  it('notices jobs that another store queues, and keys that it changes', async ({ store, another }) => {
    const at = await makeWorkflow(store);
    const key = { teamId: at.teamId, name: 'x', hash: 'x', prefix: 'x', scopes: [], expiresAt: null };
    const { id } = await store.keys.create(key);
    const other = await another();
    try {
      const jobs = nextTouch(store, (touched) => touched.jobs);
      const job = await makeJob(other, at);
      await jobs;
      assert.deepEqual(await store.jobs.get({ teamId: at.teamId, id: job.id }), job);
      const keys = nextTouch(store, (touched) => touched.keys);
      await other.keys.revoke({ id });
      await keys;
    } finally {
      await other.close();
    }
  });

  it('completes running calls before it closes, and refuses later ones', async ({ store }) => {
    const at = await makeWorkflow(store);
    await store.check();
    const last = makeJob(store, at);
    const closed = store.close();
    assert.equal((await last).state, 'queued');
    await closed;
    await store.close();
    const stopping = (error: unknown) => error instanceof Problem && error.code === 'stopping';
    await assert.rejects(makeJob(store, at), stopping);
    await assert.rejects(store.teams.list({ limit: 100 }), stopping);
    await assert.rejects(store.check());
  });
}

/** Resolves at the next touch of a kind; fails after a while, which also keeps the process alive until then. */
function nextTouch(store: Store, isOfKind: (touched: Touched) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('Nothing was noticed within 10 s')), 10_000);
    const unwatch = store.watch((touched) => {
      if (!isOfKind(touched)) return;
      clearTimeout(timer);
      unwatch();
      resolve();
    });
  });
}
