/** Schedules on a real store whose clock the tests move. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { nextRunAt } from '../model/schedule.ts';
import type { Schedule } from '../model/workflow.ts';
import { silentLogger } from '../observe/log.ts';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import { makeWorkflow } from '../store/conformance/setup.ts';
import { createScheduler } from './schedule.ts';

const SIX: Schedule = { cron: '0 6 * * *', timezone: 'Europe/Berlin', missed: 'run' };
const DAY_MS = 24 * 3_600_000;

async function open(t: TestContext, now: string) {
  let nowMs = Date.parse(now);
  const { store } = await openEmptyStore(t, { clock: () => nowMs });
  const scheduler = () => createScheduler({ store, log: silentLogger, random: () => 0 });
  return {
    store,
    scheduler,
    move: (to: string) => {
      nowMs = Date.parse(to);
    },
    /** Creates a workflow with this schedule, as if its definition were applied. */
    scheduled: (schedule: Schedule, id = 'people') =>
      makeWorkflow(store, { id, schedule, nextRunAt: nextRunAt(schedule, nowMs) }),
    /** The jobs of a workflow, oldest first. */
    async jobs(at: { teamId: string; workflowId: string }) {
      return (await store.jobs.list({ ...at, limit: 100 })).toReversed();
    },
    async nextRun({ teamId, workflowId: id }: { teamId: string; workflowId: string }) {
      const next = (await store.workflows.get({ teamId, id }))?.nextRunAt;
      return next === null || next === undefined ? next : new Date(next).toISOString();
    },
  };
}

test('queues one job when a schedule is due, and none before', async (t) => {
  const { scheduler, scheduled, move, jobs, nextRun } = await open(t, '2026-01-01T04:00Z');
  const at = await scheduled(SIX);
  const chore = scheduler();
  await chore.tick();
  move('2026-01-01T04:59:59Z');
  await chore.tick();
  assert.equal((await jobs(at)).length, 0);
  move('2026-01-01T05:00Z');
  await chore.tick();
  await chore.tick();
  const [job, ...more] = await jobs(at);
  assert.deepEqual([job?.origin, job?.state, more.length], ['schedule', 'queued', 0]);
  assert.equal(await nextRun(at), '2026-01-02T05:00:00.000Z');
});

test('several schedulers on one store queue one job', async (t) => {
  const { scheduler, scheduled, move, jobs } = await open(t, '2026-01-01T04:00Z');
  const ats = await Promise.all(['a', 'b', 'c'].map((id) => scheduled(SIX, id)));
  move('2026-01-01T05:00Z');
  const chores = [scheduler(), scheduler(), scheduler()];
  await Promise.all(chores.map((chore) => chore.tick()));
  for (const at of ats) assert.equal((await jobs(at)).length, 1);
});

test('one run makes up for all missed ones, or none with `missed: skip`', async (t) => {
  const { scheduler, scheduled, move, jobs, nextRun } = await open(t, '2026-01-01T04:00Z');
  const run = await scheduled(SIX, 'run');
  const skip = await scheduled({ ...SIX, missed: 'skip' }, 'skip');
  move('2026-01-08T12:00Z');
  await scheduler().tick();
  assert.deepEqual([(await jobs(run)).length, (await jobs(skip)).length], [1, 0]);
  assert.equal(await nextRun(skip), '2026-01-09T05:00:00.000Z');
  move('2026-01-09T05:00:30Z');
  await scheduler().tick();
  assert.equal((await jobs(skip)).length, 1);
});

test('a schedule queues no second job while one is unfinished, and advances', async (t) => {
  const { scheduler, scheduled, move, jobs, nextRun } = await open(t, '2026-01-01T04:00Z');
  const at = await scheduled(SIX);
  move('2026-01-01T05:00Z');
  await scheduler().tick();
  move('2026-01-02T05:00Z');
  await scheduler().tick();
  assert.equal((await jobs(at)).length, 1);
  assert.equal(await nextRun(at), '2026-01-03T05:00:00.000Z');
});

test('a paused workflow does not run, and runs missed during the pause are not made up for', async (t) => {
  const { store, scheduler, scheduled, move, jobs } = await open(t, '2026-01-01T04:00Z');
  const at = await scheduled(SIX);
  const { teamId, workflowId: id } = at;
  await store.workflows.pause({ teamId, id });
  move('2026-01-05T12:00Z');
  await scheduler().tick();
  await store.workflows.resume({ teamId, id, nextRunAt: nextRunAt(SIX, store.now()) });
  await scheduler().tick();
  assert.equal((await jobs(at)).length, 0);
  move('2026-01-06T05:00Z');
  await scheduler().tick();
  assert.equal((await jobs(at)).length, 1);
});

test('more schedules than one page all fire in one tick', async (t) => {
  const { store, scheduler, scheduled, move } = await open(t, '2026-01-01T04:00Z');
  let teamId = '';
  for (let n = 0; n < 250; n++) ({ teamId } = await scheduled(SIX, `w${n}`));
  move('2026-01-01T05:00Z');
  await scheduler().tick();
  assert.equal((await store.jobs.list({ teamId, limit: 1_000 })).length, 250);
});

test('an invalid schedule is disabled and does not block the others', async (t) => {
  const { store, scheduler, scheduled, move, jobs, nextRun } = await open(t, '2026-01-01T04:00Z');
  const broken: Schedule = { cron: 'never', timezone: 'UTC', missed: 'run' };
  const bad = await makeWorkflow(store, { id: 'bad', schedule: broken, nextRunAt: store.now() });
  const good = await scheduled(SIX, 'good');
  move('2026-01-01T05:00Z');
  await scheduler().tick();
  assert.deepEqual([(await jobs(bad)).length, await nextRun(bad)], [0, null]);
  assert.equal((await jobs(good)).length, 1);
});

test('once started, the scheduler ticks by itself', async (t) => {
  const { store, scheduler, scheduled, move } = await open(t, '2026-01-01T04:00Z');
  const at = await scheduled({ everyMs: DAY_MS, missed: 'run' });
  move('2026-01-02T00:00Z');
  const queued = Promise.withResolvers<void>();
  const unwatch = store.watch(({ jobs }) => jobs && queued.resolve());
  const chore = scheduler();
  chore.start();
  await queued.promise;
  await chore.stop();
  unwatch();
  assert.equal((await store.jobs.list({ ...at, limit: 10 })).length, 1);
});

test('a clock that was two days ahead for a while postpones nothing', async (t) => {
  const { scheduler, scheduled, move, jobs, nextRun } = await open(t, '2026-01-01T04:00:30Z');
  const minutely: Schedule = { everyMs: 60_000, missed: 'run' };
  const often = await scheduled(minutely, 'often');
  const daily = await scheduled(SIX, 'daily');
  const chore = scheduler();
  await chore.tick();
  move('2026-01-03T04:00:30Z');
  await chore.tick();
  assert.deepEqual(
    [await nextRun(often), await nextRun(daily)],
    ['2026-01-03T04:01:00.000Z', '2026-01-03T05:00:00.000Z'],
  );
  move('2026-01-01T04:00:45Z');
  await chore.tick();
  assert.deepEqual(
    [await nextRun(often), await nextRun(daily)],
    ['2026-01-01T04:01:00.000Z', '2026-01-01T05:00:00.000Z'],
  );
  assert.deepEqual(
    [(await jobs(often)).length, (await jobs(daily)).length],
    [1, 1],
    'correcting queues no job',
  );
});

test('a schedule that a wrong clock postponed is corrected at the next start', async (t) => {
  const { scheduler, scheduled, move, nextRun } = await open(t, '2026-01-03T04:00:30Z');
  const at = await scheduled({ everyMs: 60_000, missed: 'run' });
  move('2026-01-01T04:00:45Z');
  await scheduler().tick();
  assert.equal(await nextRun(at), '2026-01-01T04:01:00.000Z');
});

test('clocks that differ by less than a minute cause no correction', async (t) => {
  const { scheduler, scheduled, move, nextRun } = await open(t, '2026-01-01T04:00:10Z');
  const at = await scheduled({ everyMs: 60_000, missed: 'run' });
  move('2026-01-01T03:59:20Z');
  await scheduler().tick();
  assert.equal(await nextRun(at), '2026-01-01T04:01:00.000Z');
});
