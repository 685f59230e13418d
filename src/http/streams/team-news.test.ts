/** Team news: looks that fail, and changes during a look. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { load, settle, subscribe } from '../../store/conformance/sending.ts';
import { makeJob, makeWorkflow } from '../../store/conformance/setup.ts';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { TeamNews } from './team-news.ts';

/**
 * A team with a workflow, and its news. The store calls `whileReading` when it reads deliveries, so that a test can let
 * the read fail or change something. Every look compares.
 */
async function startNews(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-news-'));
  const store = await openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  t.after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  let whileReading: (webhookId: string) => Promise<void> = async () => {};
  const disturbed: Store = {
    ...store,
    deliveries: {
      ...store.deliveries,
      async list(input) {
        await whileReading(input.webhookId ?? '');
        return store.deliveries.list(input);
      },
    },
  };
  const place = await makeWorkflow(store);
  const news = new TeamNews(disturbed, place.teamId);
  await news.start();
  // Makes every look read deliveries as well.
  news.noteLanes([{ teamId: place.teamId, webhookId: 'wh_1' }]);
  const look = () => {
    nowMs += 60_000;
    return news.look();
  };
  return {
    store,
    place,
    news,
    look,
    during(act: typeof whileReading) {
      whileReading = act;
    },
    async failOnce() {
      whileReading = () => Promise.reject(new Error('out of reach'));
      await assert.rejects(look(), /out of reach/);
      whileReading = async () => {};
    },
  };
}

test('reports changes from events at the next look after a failed look', async (t) => {
  const { store, place, news, look, failOnce } = await startNews(t);
  await makeJob(store, place);
  await failOnce();
  const found = await look();
  assert.deepEqual(
    found.find(({ kind }) => kind === 'workflows'),
    { kind: 'workflows', ids: [place.workflowId] },
  );
  assert.equal(news.sequence, 1);
});

test('reports changes found by comparison at the next look after a failed look', async (t) => {
  const { store, place, look, failOnce } = await startNews(t);
  await store.workflows.pause({ teamId: place.teamId, id: place.workflowId });
  await failOnce();
  assert.deepEqual(await look(), [{ kind: 'workflows', ids: [place.workflowId] }]);
  assert.deepEqual(await look(), []);
});

test('keeps watching a webhook that gets a delivery while other webhooks are read', async (t) => {
  const { store, place, news, look, during } = await startNews(t);
  const { teamId } = place;
  const [webhookId, other] = [
    await subscribe(store, place),
    await subscribe(store, place, ['workflow_failed']),
  ];
  news.noteLanes([
    { teamId, webhookId },
    { teamId, webhookId: other },
  ]);
  during(async (read) => {
    if (read !== other) return;
    await makeJob(store, place);
    news.noteLanes([{ teamId, webhookId }]);
  });
  await look();
  during(async () => {});
  const [due] = await load(store, teamId, webhookId);
  await settle(store, due, 1, { state: 'delivered' });
  const found = (await look()).find(({ kind }) => kind === 'deliveries');
  assert.deepEqual(found, { kind: 'deliveries', ids: [due?.id] });
});
