/** Background deletion, on a real store with a test clock. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { openEmptyStore } from './conformance/empty-store.ts';
import { failAttempt, makeRunning, makeWorkflow, publishRun, readVersion } from './conformance/setup.ts';
import { deletionResumption, type Kept, teamRetention } from './retention.ts';
import type { Store } from './store.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const QUIET = { log: silentLogger, random: () => 0, nodeId: 'local' };
const KEPT: Kept = {
  keepJobs: 5,
  jobsMs: 30 * DAY_MS,
  attemptsMs: 14 * DAY_MS,
  eventsMs: 30 * DAY_MS,
  auditMs: 365 * DAY_MS,
};

async function open(t: TestContext) {
  let ahead = 0;
  const { store } = await openEmptyStore(t, { clock: () => Date.now() + ahead });
  const advance = (ms: number) => {
    ahead += ms;
  };
  return { store, advance, at: await makeWorkflow(store) };
}

async function publish(store: Store, at: { teamId: string; workflowId: string }, count: number) {
  for (let n = 0; n < count; n++) {
    const names = Array.from({ length: 300 }, (_, id) => [`p${id}`, `${n}-${id}`]);
    await publishRun(store, at, Object.fromEntries(names));
  }
}

test('prunes old versions in steps, but not within an hour after they were superseded', async (t) => {
  const { store, advance, at } = await open(t);
  await publish(store, at, 12);
  const steps: number[] = [];
  const prune: Store['records']['prune'] = async (input) => {
    steps.push(input.limit);
    return store.records.prune(input);
  };
  const watched = { ...store, records: { ...store.records, prune } };
  const pruner = teamRetention({ ...QUIET, store: watched }, KEPT);
  await pruner.tick();
  assert.equal((await store.records.version(at))?.oldest, 0);
  assert.deepEqual(steps, []);

  advance(2 * HOUR_MS);
  await pruner.tick();
  assert.equal((await store.records.version(at))?.oldest, 3);
  assert.ok(steps.length > 2 && steps.every((limit) => limit >= 1 && limit <= 500), `${steps}`);
  assert.equal((await readVersion(store, { ...at, version: 3 }, 500)).length, 300);

  advance(31 * 24 * HOUR_MS);
  await pruner.tick();
  assert.equal((await store.records.version(at))?.oldest, 12);
  assert.equal((await readVersion(store, { ...at, version: 12 }, 500)).length, 300);
});

test('visits a team when something becomes old, and after the clock was set back', async (t) => {
  const { store, advance, at } = await open(t);
  await publish(store, at, 2);
  const publishedAt = (await store.records.versions({ ...at, limit: 1 }))[0]?.publishedAt ?? 0;
  const retention = teamRetention({ ...QUIET, store }, { ...KEPT, attemptsMs: DAY_MS });
  const next = async () => {
    const [team] = await store.agenda.due({ item: 'prune', until: Number.MAX_SAFE_INTEGER, limit: 9 });
    return team?.at ?? 0;
  };
  const soon = await next();
  assert.ok(soon > store.now() && soon <= publishedAt + 300_000, 'some minutes after the first event');
  advance(HOUR_MS / 2);
  await retention.tick();
  const later = await next();
  assert.ok(Math.abs(later - (store.now() + DAY_MS)) < HOUR_MS / 2, 'nothing becomes old before that');
  advance(100 * DAY_MS);
  await retention.tick();
  assert.ok((await next()) > store.now());
  advance(-100 * DAY_MS);
  await retention.tick();
  assert.ok((await next()) <= store.now() + DAY_MS, 'not only in 100 days');
});

test('keeps the newest jobs of each workflow for a time, and the last job always', async (t) => {
  let ahead = 0;
  const { store } = await openEmptyStore(t, { clock: () => Date.now() + ahead });
  const many = await makeWorkflow(store, { id: 'many' });
  const few = await makeWorkflow(store, { id: 'few' });
  for (let n = 0; n < 30; n++) {
    const held = await makeRunning(store, many);
    await store.jobs.report({ held, lines: [{ seq: 1, at: 0, level: 'info', text: `run ${n}` }] });
    await failAttempt(store, held);
  }
  await failAttempt(store, await makeRunning(store, few));
  const count = async (at: typeof many) => (await store.jobs.list({ ...at, limit: 100 })).length;
  const retention = teamRetention({ ...QUIET, store }, KEPT);
  ahead = 600_000;
  await retention.tick();
  assert.deepEqual([await count(many), await count(few)], [5, 1]);
  ahead = 31 * DAY_MS;
  await makeRunning(store, few);
  await retention.tick();
  assert.deepEqual([await count(many), await count(few)], [1, 2]);
});

test('completes an interrupted deletion of a team after a delay', async (t) => {
  const { store } = await openEmptyStore(t);
  const gone = await makeWorkflow(store, { team: 'acme' });
  const stays = await makeWorkflow(store, { team: 'other' });
  for (const at of [gone, stays]) await publishRun(store, at, { a: 'Ada', b: 'Grace' });
  const forgotten: unknown[] = [];
  const forget = async (place: unknown) => void forgotten.push(place);
  const chore = deletionResumption({ store, log: silentLogger, random: () => 0, nodeId: 'local' }, forget);
  await chore.tick();
  await store.teams.retire({ teamId: gone.teamId, force: false });
  await store.teams.delete({ teamId: gone.teamId, limit: 1 });

  await chore.tick();
  assert.deepEqual(await store.teams.retired({ limit: 100 }), [{ id: gone.teamId, slug: 'acme' }]);
  await chore.tick();
  assert.deepEqual(await store.teams.retired({ limit: 100 }), []);
  assert.deepEqual(await store.workflows.list({ teamId: gone.teamId, archived: true, limit: 100 }), []);
  assert.deepEqual(forgotten, [gone]);
  assert.equal((await store.records.version(stays))?.total, 2);
});
