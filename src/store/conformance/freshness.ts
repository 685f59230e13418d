/** Freshness: workflows become stale once, and recover with the next success. */
import assert from 'node:assert/strict';
import { EXPECT_NOTHING } from '../../model/quality/expect.ts';
import type { Definition } from '../../model/workflow.ts';
import type { Store } from '../store.ts';
import { subscribe } from './sending.ts';
import {
  allEvents,
  allSteps,
  beginPush,
  caseWith,
  definition,
  failAttempt,
  makeRunning,
  makeWorkflow,
  type Open,
  publish,
  publishRun,
} from './setup.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The `fresh` of the cases. */
const FRESH_MS = 26 * HOUR_MS;
const FRESH = fresh(FRESH_MS);

export function testFreshness(open: Open): void {
  const it = caseWith(open);

  it('a workflow becomes stale once if no run succeeds in time, and recovers with the next success', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store, FRESH);
    await makeWorkflow(store, { id: 'other' });
    const webhook = await subscribe(store, at, ['workflow_stale', 'workflow_recovered']);
    await publishRun(store, at, { a: 'Ada' });
    const waitingSince = store.now();
    assert.deepEqual(await freshness(store, at), { freshDueAt: waitingSince + FRESH_MS, staleSince: null });
    advance(FRESH_MS - 1);
    await check(store);
    assert.deepEqual(await reported(store, at), []);
    advance(1);
    const failed = await makeRunning(store, at);
    await failAttempt(store, failed, { error: 'Out of paper' });
    await check(store);
    const staleSince = store.now();
    advance(3 * DAY_MS);
    await check(store);
    assert.deepEqual(await freshness(store, at), { freshDueAt: waitingSince + FRESH_MS, staleSince });
    assert.equal(await store.freshness.countStale({ most: 9 }), 1);
    const [event, ...more] = await reported(store, at);
    assert.equal(more.length, 0);
    assert.deepEqual([event?.type, event?.workflowId, event?.jobId], ['workflow_stale', 'people', null]);
    assert.deepEqual(event?.parsed.data, {
      workflowId: 'people',
      reason: 'No run has succeeded for 1 day 2 h',
      freshMs: FRESH_MS,
      waitingSince: iso(waitingSince),
      dueAt: iso(waitingSince + FRESH_MS),
      version: 1,
      lastJob: { id: failed.jobId, state: 'failed', finishedAt: iso(staleSince), error: 'Out of paper' },
    });

    const held = await makeRunning(store, at);
    advance(60_000);
    const { version, records } = (await publish(store, held)) as { version: number; records: object };
    assert.deepEqual(await freshness(store, at), { freshDueAt: store.now() + FRESH_MS, staleSince: null });
    const types = (await allEvents(store, at.teamId)).slice(-2).map(({ type }) => type);
    assert.deepEqual(types, ['workflow_finished', 'workflow_recovered']);
    const recovered = (await reported(store, at)).at(-1);
    assert.equal(recovered?.jobId, held.jobId);
    assert.equal(recovered?.parsed.data.staleSince, iso(staleSince));
    assert.deepEqual([recovered?.parsed.data.version, recovered?.parsed.data.records], [version, records]);
    const sent = await store.deliveries.list({ teamId: at.teamId, webhookId: webhook, limit: 9 });
    assert.equal(sent.length, 2);
    advance(FRESH_MS);
    await check(store);
    assert.deepEqual(await typesOf(store, at), ['workflow_stale', 'workflow_recovered', 'workflow_stale']);
  });

  it('a workflow that has never run becomes stale', async ({ store, advance }) => {
    const at = await makeWorkflow(store, FRESH);
    advance(FRESH_MS);
    await check(store);
    const [event] = await reported(store, at);
    assert.deepEqual([event?.parsed.data.version, event?.parsed.data.lastJob], [0, null]);
  });

  it('runs that change nothing and pushes count as successes, failures do not', async ({
    store,
    advance,
  }) => {
    const pushed = await makeWorkflow(store, { id: 'pushed', source: { type: 'push' }, ...FRESH });
    advance(HOUR_MS);
    assert.equal((await publish(store, await beginPush(store, pushed))).outcome, 'unchanged');
    assert.equal((await freshness(store, pushed))?.freshDueAt, store.now() + FRESH_MS);
    const at = await makeWorkflow(store, FRESH);
    advance(HOUR_MS);
    assert.equal((await publish(store, await makeRunning(store, at))).outcome, 'unchanged');
    const dueAt = (await freshness(store, at))?.freshDueAt;
    assert.equal(dueAt, store.now() + FRESH_MS);
    advance(HOUR_MS);
    await failAttempt(store, await makeRunning(store, at));
    const records = { ...EXPECT_NOTHING.records, min: 9 };
    const held = await makeRunning(store, at);
    assert.equal(
      (await publish(store, held, { expected: { expect: { ...EXPECT_NOTHING, records } } })).outcome,
      'guarded',
    );
    await failAttempt(store, held, { reason: 'guard' });
    assert.equal((await freshness(store, at))?.freshDueAt, dueAt);
  });

  it('two nodes report a stale workflow once, even if both look at the same moment', async ({
    store,
    advance,
    another,
  }) => {
    const ids = ['a', 'b', 'c'];
    for (const id of ids) await makeWorkflow(store, { id, ...FRESH });
    advance(FRESH_MS);
    const other = await another();
    try {
      const { id: teamId } = await store.teams.ensure({ slug: 'default' });
      const mark = (node: Store) => node.freshness.markStale({ teamId, limit: 9 });
      const found = await Promise.all([mark(store), mark(other), mark(store), mark(other)]);
      assert.deepEqual(found.flatMap(({ stale }) => stale).sort(), ids);
      await check(other);
      for (const workflowId of ids) assert.equal((await reported(store, { teamId, workflowId })).length, 1);
    } finally {
      await other.close();
    }
  });

  it('a workflow that was due while the node was down becomes stale at the next start', async ({
    store,
    advance,
    reopen,
  }) => {
    const at = await makeWorkflow(store, FRESH);
    await publishRun(store, at, { a: 'Ada' });
    advance(7 * DAY_MS);
    const again = await reopen();
    await check(again);
    await check(again);
    assert.deepEqual(
      (await reported(again, at)).map(({ parsed }) => parsed.data.dueAt),
      [iso(again.now() - 7 * DAY_MS + FRESH_MS)],
    );
  });

  it('a time that was written before the clock was set back is corrected', async ({ store, advance }) => {
    advance(30 * DAY_MS);
    const at = await makeWorkflow(store, FRESH);
    await makeWorkflow(store, { team: 'other', ...FRESH });
    await store.workflows.pause({ teamId: at.teamId, id: at.workflowId });
    advance(-30 * DAY_MS);
    const teams = await store.freshness.ahead({ limit: 9 });
    assert.equal(teams.length, 2);
    assert.deepEqual(await store.freshness.ahead({ after: teams[0]?.teamId, limit: 9 }), teams.slice(1));
    for (const { teamId } of teams) await store.freshness.markStale({ teamId, limit: 9 });
    assert.deepEqual(await store.freshness.ahead({ limit: 9 }), []);
    assert.equal((await freshness(store, at))?.freshDueAt, store.now() + FRESH_MS);
    advance(FRESH_MS);
    await check(store);
    assert.equal(await store.freshness.countStale({ most: 9 }), 1, 'the paused one is not stale');
  });

  it('a changed definition does not move the time, a changed `fresh` does', async ({ store, advance }) => {
    const at = await makeWorkflow(store, FRESH);
    const { freshDueAt } = (await freshness(store, at)) ?? {};
    advance(HOUR_MS);
    await apply(store, at, { name: 'Renamed', ...FRESH });
    assert.equal((await freshness(store, at))?.freshDueAt, freshDueAt);
    await apply(store, at, fresh(HOUR_MS));
    assert.equal((await freshness(store, at))?.freshDueAt, store.now() + HOUR_MS);
    advance(HOUR_MS);
    await check(store);
    assert.deepEqual(await typesOf(store, at), ['workflow_stale']);
  });

  it('a stale workflow stays stale when its definition is corrected', async ({ store, advance }) => {
    const at = await makeWorkflow(store, FRESH);
    advance(FRESH_MS);
    await check(store);
    const stale = await freshness(store, at);
    for (const changes of [{ name: 'Corrected', ...FRESH }, fresh(DAY_MS)]) {
      await apply(store, at, changes);
      assert.deepEqual(await freshness(store, at), stale);
    }
    advance(9 * DAY_MS);
    await check(store);
    await publishRun(store, at, { a: 'Ada' });
    assert.deepEqual(await typesOf(store, at), ['workflow_stale', 'workflow_recovered']);
  });

  it('a definition that loses `fresh` ends it without an event', async ({ store, advance }) => {
    const at = await makeWorkflow(store, FRESH);
    await apply(store, at, {});
    assert.deepEqual(await freshness(store, at), { freshDueAt: null, staleSince: null });
    advance(9 * DAY_MS);
    await check(store);
    assert.deepEqual(await reported(store, at), []);
    await apply(store, at, FRESH);
    advance(FRESH_MS);
    await check(store);
    await apply(store, at, {});
    assert.deepEqual(await freshness(store, at), { freshDueAt: null, staleSince: null });
    await publishRun(store, at, { a: 'Ada' });
    assert.deepEqual(await typesOf(store, at), ['workflow_stale']);
  });

  it('a paused or archived workflow does not become stale, and gets the whole time afterwards', async ({
    store,
    advance,
  }) => {
    const paused = await makeWorkflow(store, { id: 'paused', ...FRESH });
    const archived = await makeWorkflow(store, { id: 'archived', ...FRESH });
    const { teamId } = paused;
    await store.workflows.pause({ teamId, id: 'paused' });
    await store.workflows.archive({ teamId, ids: ['archived'] });
    advance(9 * DAY_MS);
    await check(store);
    assert.deepEqual([...(await reported(store, paused)), ...(await reported(store, archived))], []);
    await store.workflows.resume({ teamId, id: 'paused', nextRunAt: null });
    await apply(store, archived, FRESH);
    const again = { freshDueAt: store.now() + FRESH_MS, staleSince: null };
    for (const at of [paused, archived]) assert.deepEqual(await freshness(store, at), again);
    advance(FRESH_MS - 1);
    await check(store);
    assert.equal(await store.freshness.countStale({ most: 9 }), 0);
    advance(1);
    await check(store);
    for (const at of [paused, archived]) assert.deepEqual(await typesOf(store, at), ['workflow_stale']);
    assert.equal(await store.freshness.countStale({ most: 9 }), 2);
  });

  it('a stale workflow stays stale over a pause or an archive, and is not counted meanwhile', async ({
    store,
    advance,
  }) => {
    const paused = await makeWorkflow(store, { id: 'paused', ...FRESH });
    const archived = await makeWorkflow(store, { id: 'archived', ...FRESH });
    const { teamId } = paused;
    advance(FRESH_MS);
    await check(store);
    const stale = await freshness(store, paused);
    await store.workflows.pause({ teamId, id: 'paused' });
    await store.workflows.archive({ teamId, ids: ['archived'] });
    assert.equal(await store.freshness.countStale({ most: 9 }), 0);
    advance(DAY_MS);
    await store.workflows.resume({ teamId, id: 'paused', nextRunAt: null });
    await apply(store, archived, FRESH);
    await check(store);
    for (const at of [paused, archived]) {
      assert.deepEqual(await freshness(store, at), stale);
      await publishRun(store, at, { a: 'Ada' });
      assert.deepEqual(await typesOf(store, at), ['workflow_stale', 'workflow_recovered']);
    }
  });

  it('a team is visited when a workflow is due, at least once a day, and not without a workflow', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    assert.deepEqual(await agenda(store), []);
    await apply(store, at, FRESH);
    await makeWorkflow(store, { id: 'soon', ...fresh(HOUR_MS) });
    const { teamId } = at;
    assert.deepEqual(await agenda(store), [{ teamId, at: store.now() + HOUR_MS }]);
    await publishRun(store, { teamId, workflowId: 'soon' }, { a: 'Ada' });
    advance(HOUR_MS);
    await check(store);
    assert.deepEqual(await typesOf(store, { teamId, workflowId: 'soon' }), ['workflow_stale']);
    const day = store.now() + DAY_MS;
    assert.deepEqual(await agenda(store), [{ teamId, at: day }]);
    advance(DAY_MS);
    await check(store);
    assert.deepEqual(await agenda(store), [{ teamId, at: day + HOUR_MS }]);
    await store.workflows.pause({ teamId, id: at.workflowId });
    advance(HOUR_MS);
    await check(store);
    assert.deepEqual(await agenda(store), [], 'nothing becomes stale any more');
    await publishRun(store, { teamId, workflowId: 'soon' }, { a: 'Ada' });
    assert.deepEqual(await agenda(store), [{ teamId, at: store.now() + HOUR_MS }]);
  });

  it('marks many workflows in steps', async ({ store, advance }) => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) await makeWorkflow(store, { id, ...FRESH });
    const { teamId } = await makeWorkflow(store, { id: 'f', ...FRESH });
    advance(FRESH_MS);
    assert.equal(await allSteps(store.freshness.markStale, { teamId, limit: 2 }), 4);
    assert.equal(await store.freshness.countStale({ most: 9 }), 6);
    assert.equal(await store.freshness.countStale({ most: 4 }), 4);
  });

  it('nothing of a deleted team becomes stale', async ({ store, advance }) => {
    const { teamId } = await makeWorkflow(store, { team: 'acme', ...FRESH });
    await store.teams.retire({ teamId, force: true });
    advance(FRESH_MS);
    await check(store);
    assert.deepEqual(await allEvents(store, teamId), []);
    assert.deepEqual(await agenda(store), []);
    await allSteps(store.teams.delete, { teamId, limit: 100 });
    assert.deepEqual(await store.freshness.markStale({ teamId, limit: 9 }), { done: true, stale: [] });
  });
}

/** A definition that sets `fresh`. */
function fresh(freshMs: number): Partial<Definition> {
  return { expect: { ...EXPECT_NOTHING, freshMs } };
}

/** Visits every team that is due, like the chore. */
async function check(store: Store): Promise<void> {
  const due = await store.agenda.due({ item: 'fresh', until: store.now(), limit: 100 });
  for (const { teamId } of due) await allSteps(store.freshness.markStale, { teamId, limit: 100 });
}

async function apply(
  store: Store,
  { teamId, workflowId: id }: { teamId: string; workflowId: string },
  changes: Partial<Definition>,
): Promise<void> {
  const hash = JSON.stringify({ changes, at: store.now() });
  await store.workflows.apply({ teamId, id, definition: definition(changes), hash, nextRunAt: null });
}

async function freshness(store: Store, { teamId, workflowId: id }: { teamId: string; workflowId: string }) {
  const found = await store.workflows.get({ teamId, id });
  return found && { freshDueAt: found.freshDueAt, staleSince: found.staleSince };
}

/** The events about the freshness of a workflow. */
async function reported(store: Store, { teamId, workflowId }: { teamId: string; workflowId: string }) {
  return (await allEvents(store, teamId)).filter(
    (event) =>
      event.workflowId === workflowId &&
      (event.type === 'workflow_stale' || event.type === 'workflow_recovered'),
  );
}

async function typesOf(store: Store, at: { teamId: string; workflowId: string }) {
  return (await reported(store, at)).map(({ type }) => type);
}

function agenda(store: Store) {
  return store.agenda.due({ item: 'fresh', until: Number.MAX_SAFE_INTEGER, limit: 9 });
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
