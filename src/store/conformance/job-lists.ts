/** Lists and counts of jobs, and pruning. */
import assert from 'node:assert/strict';
import type { Job, JobState } from '../../model/job.ts';
import type { Store } from '../store.ts';
import {
  allSteps,
  caseWith,
  claimOne,
  failAttempt,
  makeJob,
  makeRunning,
  makeWorkflow,
  type Open,
  publishRun,
} from './setup.ts';

const DAY_MS = 24 * 3_600_000;
/** More workflows than one step of pruning visits. */
const WORKFLOWS = 110;
const KEEP = { keepJobs: 50, keepMs: 30 * DAY_MS, limit: 100 };

export function testJobHistory(open: Open): void {
  const it = caseWith(open);

  it('lists a team’s jobs in pages, newest first', async ({ store }) => {
    const ids: string[] = [];
    for (let n = 0; n < 7; n++) {
      ids.unshift((await makeJob(store, await makeWorkflow(store, { id: `w${n}` }))).id);
    }
    await makeJob(store, await makeWorkflow(store, { team: 'other' }));
    const { teamId } = await makeWorkflow(store, { id: 'w0' });
    const listed: string[] = [];
    for (;;) {
      const before = listed.at(-1);
      const page = await store.jobs.list({ teamId, limit: 3, ...(before === undefined ? {} : { before }) });
      if (page.length === 0) break;
      listed.push(...page.map(({ id }) => id));
    }
    assert.deepEqual(listed, ids);
    const [job] = await store.jobs.list({ teamId, limit: 1 });
    assert.deepEqual(job, await store.jobs.get({ teamId, id: ids[0] as string }));
  });

  it('returns the newest jobs of each of many workflows', async ({ store }) => {
    const a = await makeWorkflow(store, { id: 'a' });
    const b = await makeWorkflow(store, { id: 'b' });
    const { teamId } = a;
    const [, second, third] = await endJobs(store, a, 3);
    await makeJob(store, await makeWorkflow(store, { team: 'other', id: 'a' }));
    const queued = await makeJob(store, b);
    const recent = await store.jobs.recent({ teamId, workflowIds: ['a', 'b', 'c'], each: 2 });
    const ids = [...recent].map(([id, jobs]) => [id, jobs.map((job) => job.id)]);
    assert.deepEqual(Object.fromEntries(ids), { a: [third, second], b: [queued.id] });
    const { id, state, createdAt, startedAt, finishedAt } = (await store.jobs.list({ teamId, limit: 2 })).at(
      -1,
    ) as Job;
    const [first] = recent.get('a') ?? [];
    assert.deepEqual({ ...first }, { ...first, id, state, createdAt, startedAt, finishedAt });
    assert.equal((await store.jobs.recent({ teamId, workflowIds: [], each: 2 })).size, 0);
  });

  it('reads the current job, the last ended job and the number of records of many workflows', async ({
    store,
  }) => {
    const a = await makeWorkflow(store, { id: 'a', overlap: 'buffer' });
    const b = await makeWorkflow(store, { id: 'b' });
    await makeWorkflow(store, { id: 'c' });
    const { teamId } = a;
    await publishRun(store, a, { a: 'Ada', g: 'Grace' });
    const [, ended] = await endJobs(store, a, 2);
    const current = await makeJob(store, a);
    await makeJob(store, a);
    await makeJob(store, await makeWorkflow(store, { team: 'other', id: 'b' }));
    const found = await store.jobs.summaries({ teamId, workflowIds: ['a', 'b', 'c', 'none'] });
    const shown = [...found].map(([id, { records, current, last }]) => [id, records, current?.id, last?.id]);
    assert.deepEqual(shown.sort(), [
      ['a', 2, current.id, ended],
      ['b', 0, undefined, undefined],
      ['c', 0, undefined, undefined],
    ]);
    const alone = await store.jobs.summaries({ teamId: b.teamId, workflowIds: ['a'] });
    assert.deepEqual(alone.get('a'), found.get('a'));
    assert.deepEqual(found.get('a')?.current, await store.jobs.get({ teamId, id: current.id }));
  });

  it('counts jobs by state, ended ones only among the newest', async ({ store }) => {
    const at = await makeWorkflow(store, { id: 'a', overlap: 'buffer' });
    const other = await makeWorkflow(store, { id: 'b' });
    const { teamId } = at;
    await publishRun(store, at, { a: 'Ada' });
    await endJobs(store, at, 3);
    const waiting = await makeJob(store, other);
    await makeJob(store, await makeWorkflow(store, { team: 'other' }));
    const all = { queued: 1, finished: 1, failed: 3 };
    assert.deepEqual(await store.jobs.counts({ teamId, among: 6 }), { states: all, complete: true });
    const newest = { states: { queued: 1, failed: 1 }, complete: false };
    assert.deepEqual(await store.jobs.counts({ teamId, among: 2 }), newest);
    await store.jobs.cancel({ teamId, id: waiting.id, by: 'somebody' });
    const ofB = { states: { canceled: 1 }, complete: true };
    assert.deepEqual(await store.jobs.counts({ teamId, workflowId: 'b', among: 9 }), ofB);
  });

  it('lists by workflow, state and origin', async ({ store }) => {
    const at = await makeWorkflow(store, { id: 'a', overlap: 'buffer' });
    const other = await makeWorkflow(store, { id: 'b' });
    await publishRun(store, at, { a: 'Ada' });
    const failed = await makeRunning(store, at);
    await failAttempt(store, failed);
    const canceled = await makeJob(store, other);
    await store.jobs.cancel({ teamId: at.teamId, id: canceled.id, by: 'Canceled by a test' });
    const running = await makeRunning(store, at);
    const waiting = await store.jobs.enqueue({ ...at, origin: 'cli', idempotencyKey: null });
    assert.equal(waiting.outcome, 'queued');
    const list = async (filter: { workflowId?: string; states?: JobState[]; origin?: 'cli' }) =>
      (await store.jobs.list({ teamId: at.teamId, limit: 10, ...filter })).map(
        ({ workflowId, state }) => `${workflowId} ${state}`,
      );
    const all = ['a queued', 'a running', 'b canceled', 'a failed', 'a finished'];
    assert.deepEqual(await list({}), all);
    assert.deepEqual(
      await list({ workflowId: 'a' }),
      all.filter((line) => line.startsWith('a')),
    );
    assert.deepEqual(await list({ states: ['queued', 'running'] }), all.slice(0, 2));
    assert.deepEqual(await list({ states: ['canceled', 'failed'] }), all.slice(2, 4));
    assert.deepEqual(await list({ states: ['finished', 'running'] }), ['a running', 'a finished']);
    assert.deepEqual(await list({ workflowId: 'a', states: ['failed', 'canceled'] }), ['a failed']);
    assert.deepEqual(await list({ origin: 'cli' }), ['a queued']);
    assert.deepEqual(await list({ states: [] }), []);
    const before = { teamId: at.teamId, limit: 10, before: running.jobId };
    assert.equal((await store.jobs.list({ ...before, states: ['queued', 'running'] })).length, 0);
    assert.equal((await store.jobs.list({ ...before, workflowId: 'a' })).length, 2);
  });

  it('keeps the newest jobs of each workflow and, of old ones, only the newest', async ({
    store,
    advance,
  }) => {
    const often = await makeWorkflow(store, { id: 'often' });
    const once = await makeWorkflow(store, { id: 'once' });
    await failAttempt(store, await makeRunning(store, once));
    const ended = await endJobs(store, often, 5);
    await prune(store, often, { ...KEEP, keepJobs: 3, limit: 1 });
    assert.deepEqual(await idsOf(store, often), ended.slice(2).reverse());
    assert.equal((await idsOf(store, once)).length, 1);
    advance(30 * DAY_MS);
    const [young] = await endJobs(store, often, 1);
    await prune(store, often, KEEP);
    assert.deepEqual(await idsOf(store, often), [young]);
    assert.equal((await idsOf(store, once)).length, 1, 'the last run stays visible');
  });

  it('does not prune unfinished jobs', async ({ store, advance }) => {
    const at = await makeWorkflow(store, { overlap: 'buffer' });
    const running = await makeRunning(store, at);
    const behind = await makeJob(store, at);
    advance(60 * DAY_MS);
    await prune(store, at, { ...KEEP, keepJobs: 0, keepMs: 0 });
    assert.deepEqual(await idsOf(store, at), [behind.id, running.jobId]);
    await failAttempt(store, running);
    await failAttempt(store, await claimOne(store));
    await prune(store, at, { ...KEEP, keepJobs: 0, keepMs: 0 });
    assert.deepEqual(await idsOf(store, at), [behind.id]);
  });

  it('prunes logs with their jobs', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    await store.jobs.report({ held, lines: [{ seq: 1, at: 1, level: 'info', text: 'hello' }] });
    await failAttempt(store, held);
    const log = () => store.jobs.log({ ...held, afterSeq: 0, limit: 9 });
    await prune(store, at, { ...KEEP, keepJobs: 1 });
    assert.equal((await log()).length, 1);
    await endJobs(store, at, 1);
    await prune(store, at, { ...KEEP, keepJobs: 1 });
    assert.deepEqual(await log(), []);
    assert.equal(await store.jobs.get({ teamId: at.teamId, id: held.jobId }), undefined);
  });

  it('keeps a job that an idempotency key refers to', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const keyed = { ...at, origin: 'api', idempotencyKey: 'k' } as const;
    await store.jobs.enqueue(keyed);
    const held = await claimOne(store);
    await failAttempt(store, held);
    await endJobs(store, at, 3);
    await prune(store, at, { ...KEEP, keepJobs: 1 });
    assert.equal((await idsOf(store, at)).length, 2);
    assert.equal((await store.jobs.enqueue(keyed)).outcome, 'replayed');
    advance(DAY_MS);
    await prune(store, at, { ...KEEP, keepJobs: 1 });
    assert.equal((await idsOf(store, at)).length, 1);
  });

  it('visits many workflows in steps', async ({ store }) => {
    const at = await makeWorkflow(store, { id: 'w0' });
    const others = Array.from({ length: WORKFLOWS - 1 }, (_, n) => makeWorkflow(store, { id: `w${n + 1}` }));
    const all = [at, ...(await Promise.all(others))];
    for (let round = 0; round < 2; round++) {
      const jobs = await Promise.all(all.map((at) => makeJob(store, at)));
      const by = 'Canceled by a test';
      await Promise.all(jobs.map(({ teamId, id }) => store.jobs.cancel({ teamId, id, by })));
    }
    assert.ok((await prune(store, at, { ...KEEP, keepJobs: 1, limit: 30 })) >= 4);
    const left = await store.jobs.list({ teamId: at.teamId, limit: 1_000 });
    assert.equal(left.length, WORKFLOWS);
    assert.equal(await prune(store, at, { ...KEEP, keepJobs: 1, limit: 1_000 }), 2);
  });
}

/** Runs `count` jobs of a workflow in sequence; returns their ids, oldest first. */
async function endJobs(
  store: Store,
  at: { teamId: string; workflowId: string },
  count: number,
): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const held = await makeRunning(store, at);
    await failAttempt(store, held);
    ids.push(held.jobId);
  }
  return ids;
}

async function idsOf(store: Store, at: { teamId: string; workflowId: string }): Promise<string[]> {
  return (await store.jobs.list({ ...at, limit: 100 })).map(({ id }) => id);
}

/** Returns the number of calls. */
function prune(store: Store, { teamId }: { teamId: string }, input: typeof KEEP): Promise<number> {
  return allSteps(store.jobs.prune, { teamId, ...input });
}
