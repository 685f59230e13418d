/** Deletions of teams that were interrupted, on a real store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import { makeWorkflow, publishRun } from '../store/conformance/setup.ts';
import { deletionResumption } from './retention.ts';

test('deletes what an interrupted deletion left, after a delay, and nothing else', async (t) => {
  const { store } = await openEmptyStore(t);
  const gone = await makeWorkflow(store, { team: 'acme' });
  const stays = await makeWorkflow(store, { team: 'other' });
  for (const at of [gone, stays]) await publishRun(store, at, { a: 'Ada', b: 'Grace' });
  const forgotten: unknown[] = [];
  const forget = async (place: unknown) => void forgotten.push(place);
  const chore = deletionResumption({
    store,
    log: silentLogger,
    random: () => 0,
    nodeId: 'local',
    forget,
  });
  await chore.tick();
  await store.teams.retire({ teamId: gone.teamId, force: false });
  await store.teams.delete({ teamId: gone.teamId, limit: 1 });

  await chore.tick();
  assert.deepEqual(await store.teams.retired({ limit: 100 }), [{ id: gone.teamId, slug: 'acme' }]);
  await chore.tick();
  assert.deepEqual(await store.teams.retired({ limit: 100 }), []);
  assert.deepEqual(await store.erasure.workflows({ teamId: gone.teamId, limit: 100 }), []);
  assert.deepEqual(forgotten, [gone]);
  assert.equal((await store.records.version(stays))?.total, 2);
});
