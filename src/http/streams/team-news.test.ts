/** A look at a team's changes that fails halfway. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { makeJob, makeWorkflow } from '../../store/conformance/setup.ts';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { TeamNews } from './team-news.ts';

/** A team with a workflow, its news on a store that fails on request, and a look that is always due. */
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
  let failing = false;
  const flaky: Store = {
    ...store,
    deliveries: {
      ...store.deliveries,
      list: (input) => (failing ? Promise.reject(new Error('out of reach')) : store.deliveries.list(input)),
    },
  };
  const place = await makeWorkflow(store);
  const news = new TeamNews(flaky, place.teamId);
  await news.begin();
  // From now on deliveries are read as well.
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
    async failOnce() {
      failing = true;
      await assert.rejects(look(), /out of reach/);
      failing = false;
    },
  };
}

test('leaves what events report to the next look', async (t) => {
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

test('leaves what is found by comparison to the next look', async (t) => {
  const { store, place, look, failOnce } = await startNews(t);
  await store.workflows.pause({ teamId: place.teamId, id: place.workflowId });
  await failOnce();
  assert.deepEqual(await look(), [{ kind: 'workflows', ids: [place.workflowId] }]);
  assert.deepEqual(await look(), []);
});
