/** Schedules, and pausing workflows. */
import assert from 'node:assert/strict';
import type { Schedule } from '../../model/workflow.ts';
import type { Store } from '../store.ts';
import {
  allEvents,
  caseWith,
  claimOne,
  definition,
  failAttempt,
  jobOf,
  makeJob,
  makeWorkflow,
  type Open,
} from './setup.ts';

const HOURLY: Schedule = { everyMs: 3_600_000, missed: 'run' };
const DAILY: Schedule = { cron: '0 6 * * *', timezone: 'Europe/Berlin', missed: 'skip' };

export function testSchedules(open: Open): void {
  const it = caseWith(open);

  it('lists due workflows, longest due first', async ({ store, advance }) => {
    const soon = store.now() + 10;
    const a = await makeWorkflow(store, { id: 'a', schedule: HOURLY, nextRunAt: soon + 5 });
    await makeWorkflow(store, { id: 'b', schedule: DAILY, nextRunAt: soon });
    await makeWorkflow(store, { id: 'c', schedule: null, nextRunAt: soon });
    advance(9);
    assert.deepEqual(await store.schedules.due({ limit: 10 }), []);
    advance(6);
    const { teamId } = a;
    const due = [
      { teamId, workflowId: 'b', schedule: DAILY, dueAt: soon },
      { teamId, workflowId: 'a', schedule: HOURLY, dueAt: soon + 5 },
    ];
    assert.deepEqual(await store.schedules.due({ limit: 10 }), due);
    assert.deepEqual(await store.schedules.due({ limit: 1 }), due.slice(0, 1));
    await store.workflows.pause({ teamId, id: 'b' });
    await store.workflows.archive({ teamId, ids: ['a'] });
    assert.deepEqual(await store.schedules.due({ limit: 10 }), []);
  });

  it('lists workflows that are not due yet, in pages', async ({ store }) => {
    const later = store.now() + 1;
    for (const id of ['c', 'a', 'b', 'paused']) {
      await makeWorkflow(store, { id, schedule: HOURLY, nextRunAt: later });
    }
    const { teamId } = await makeWorkflow(store, { id: 'due', schedule: HOURLY, nextRunAt: store.now() });
    await makeWorkflow(store, { id: 'none', schedule: null });
    await store.workflows.pause({ teamId, id: 'paused' });
    const first = await store.schedules.ahead({ after: null, limit: 2 });
    assert.deepEqual(
      first,
      ['a', 'b'].map((workflowId) => ({ teamId, workflowId, schedule: HOURLY, dueAt: later })),
    );
    const rest = await store.schedules.ahead({ after: first[1] ?? null, limit: 2 });
    assert.deepEqual(
      rest.map(({ workflowId }) => workflowId),
      ['c'],
    );
  });

  it('lets exactly one of many nodes fire, which queues one job with its event', async ({ store }) => {
    const dueAt = store.now();
    const at = await makeWorkflow(store, { schedule: HOURLY, nextRunAt: dueAt });
    const nextAt = dueAt + 3_600_000;
    const fire = { ...at, dueAt, nextAt, run: true };
    const results = await Promise.all([1, 2, 3].map(() => store.schedules.fire(fire)));
    const outcomes = results.map(({ outcome }) => outcome).sort();
    assert.deepEqual(outcomes, ['queued', 'taken', 'taken']);
    const job = results.find(({ outcome }) => outcome === 'queued')?.job;
    assert.deepEqual([job?.origin, job?.state], ['schedule', 'queued']);
    assert.equal((await workflow(store, at))?.nextRunAt, nextAt);
    const events = await allEvents(store, at.teamId);
    assert.deepEqual(
      events.map(({ type, jobId }) => [type, jobId]),
      [['workflow_queued', job?.id]],
    );
    assert.deepEqual(await store.schedules.due({ limit: 10 }), []);
  });

  it('coalesces a run with an unfinished job; with overlap: buffer one run may wait', async ({ store }) => {
    for (const overlap of ['reject', 'buffer'] as const) {
      let dueAt = store.now();
      const at = await makeWorkflow(store, { id: overlap, overlap, schedule: HOURLY, nextRunAt: dueAt });
      const fire = async () => {
        const fired = await store.schedules.fire({ ...at, dueAt, nextAt: dueAt + 1, run: true });
        dueAt += 1;
        return fired;
      };
      let last = await makeJob(store, at);
      if (overlap === 'buffer') {
        const waits = await fire();
        assert.deepEqual([waits.outcome, waits.job?.slot], ['queued', 1]);
        last = waits.job ?? last;
      }
      assert.deepEqual(await fire(), { outcome: 'coalesced', job: last });
      assert.equal((await workflow(store, at))?.nextRunAt, dueAt);
    }
  });

  it('advances a schedule without a run, even to its end', async ({ store }) => {
    const dueAt = store.now();
    const at = await makeWorkflow(store, { schedule: DAILY, nextRunAt: dueAt });
    const skip = { ...at, dueAt, nextAt: null, run: false };
    assert.deepEqual(await store.schedules.fire(skip), { outcome: 'skipped', job: null });
    assert.equal((await workflow(store, at))?.nextRunAt, null);
    assert.deepEqual(await allEvents(store, at.teamId), []);
  });

  it('does not fire a workflow that was paused or archived, or whose time has changed', async ({ store }) => {
    const dueAt = store.now();
    const at = await makeWorkflow(store, { schedule: DAILY, nextRunAt: dueAt });
    const fire = { ...at, dueAt, nextAt: dueAt + 1, run: true };
    const taken = { outcome: 'taken', job: null };
    assert.deepEqual(await store.schedules.fire({ ...fire, dueAt: dueAt - 1 }), taken);
    await store.workflows.pause({ teamId: at.teamId, id: at.workflowId });
    assert.deepEqual(await store.schedules.fire(fire), taken);
    await store.workflows.resume({ teamId: at.teamId, id: at.workflowId, nextRunAt: dueAt });
    await store.workflows.archive({ teamId: at.teamId, ids: [at.workflowId] });
    assert.deepEqual(await store.schedules.fire(fire), taken);
    assert.deepEqual(await allEvents(store, at.teamId), []);
  });

  it('keeps the time of an unchanged schedule, and sets the given time of a changed one', async ({
    store,
  }) => {
    const at = await makeWorkflow(store, { schedule: HOURLY, nextRunAt: 100 });
    const apply = async (hash: string, schedule: Schedule | null, nextRunAt: number | null) => {
      const outcome = await store.workflows.apply({
        teamId: at.teamId,
        id: at.workflowId,
        definition: definition({ name: hash, schedule }),
        hash,
        nextRunAt,
      });
      return [outcome, (await workflow(store, at))?.nextRunAt];
    };
    assert.deepEqual(await apply('h2', { ...HOURLY }, 200), ['changed', 100]);
    assert.deepEqual(await apply('h2', { ...HOURLY }, 300), ['unchanged', 100]);
    assert.deepEqual(await apply('h3', DAILY, 400), ['changed', 400]);
    assert.deepEqual(await apply('h4', null, null), ['changed', null]);
    assert.deepEqual(await apply('h5', DAILY, 500), ['changed', 500]);
    await store.workflows.archive({ teamId: at.teamId, ids: [at.workflowId] });
    assert.deepEqual(await apply('h5', DAILY, 600), ['restored', 600]);
  });

  it('pauses a workflow: a running job continues, and no job starts', async ({ store, advance }) => {
    const at = await makeWorkflow(store, { overlap: 'buffer', schedule: HOURLY, nextRunAt: 100 });
    await makeJob(store, at);
    const held = await claimOne(store);
    const id = { teamId: at.teamId, id: at.workflowId };
    const paused = await store.workflows.pause(id);
    assert.deepEqual([paused?.pausedAt, paused?.nextRunAt], [store.now(), 100]);
    advance(5);
    assert.deepEqual(await store.workflows.pause(id), paused, 'twice is harmless');
    assert.equal((await jobOf(store, held)).state, 'running');
    await failAttempt(store, held);
    const enqueue = { ...at, origin: 'api', idempotencyKey: null } as const;
    assert.deepEqual(await store.jobs.enqueue(enqueue), { outcome: 'paused' });
    const resumed = await store.workflows.resume({ ...id, nextRunAt: 900 });
    assert.deepEqual([resumed?.pausedAt, resumed?.nextRunAt], [null, 900]);
    assert.deepEqual(await store.workflows.resume({ ...id, nextRunAt: 999 }), resumed);
    await makeJob(store, at);
  });

  it('pauses and resumes only existing workflows, and sets no time without a schedule', async ({ store }) => {
    const at = await makeWorkflow(store);
    const id = { teamId: at.teamId, id: at.workflowId };
    await store.workflows.pause(id);
    assert.equal((await store.workflows.resume({ ...id, nextRunAt: 900 }))?.nextRunAt, null);
    await store.workflows.archive({ teamId: at.teamId, ids: [at.workflowId] });
    for (const unknown of [id, { ...id, id: 'unknown' }, { ...id, teamId: 'team_x' }]) {
      assert.equal(await store.workflows.pause(unknown), undefined);
      assert.equal(await store.workflows.resume({ ...unknown, nextRunAt: 1 }), undefined);
    }
  });
}

function workflow(store: Store, at: { teamId: string; workflowId: string }) {
  return store.workflows.get({ teamId: at.teamId, id: at.workflowId });
}
