/** Claims: fair between teams, by priority within one. */
import assert from 'node:assert/strict';
import type { Job } from '../../model/job.ts';
import type { Store } from '../store.ts';
import { CLAIM, caseWith, failAttempt, heldOf, makeJob, makeMany, makeWorkflow, type Open } from './setup.ts';

const BACKLOG = 200;

export function testClaims(open: Open): void {
  const it = caseWith(open);

  it('claims for the team with the fewest running jobs', async ({ store, advance }) => {
    await makeJobs(store, 'a', 4);
    advance(1);
    await makeJobs(store, 'b', 2);
    advance(1);
    await makeJobs(store, 'c', 1);
    const slugs = await slugsOf(store);
    const teams = async (limit: number) =>
      (await claim(store, { limit })).map((job) => slugs.get(job.teamId));
    assert.deepEqual(await teams(2), ['a', 'b']);
    assert.deepEqual(await teams(3), ['c', 'a', 'b']);
    assert.deepEqual(await teams(9), ['a', 'a']);
  });

  it('claims no more than `perTeam` for a team, even if places are left', async ({ store }) => {
    await makeJobs(store, 'a', 4);
    await makeJobs(store, 'b', 1);
    assert.equal((await claim(store, { limit: 10, perTeam: 2 })).length, 3);
    assert.deepEqual(await claim(store, { limit: 10, perTeam: 2 }), []);
    const [job] = await claim(store, { limit: 1, perTeam: 3 });
    assert.ok(job);
    await failAttempt(store, heldOf(job));
    assert.equal((await claim(store, { limit: 10, perTeam: 3 })).length, 1);
  });

  it('delays the first job of another team by at most one slot, however large a backlog is', async ({
    store,
    advance,
  }) => {
    await makeJobs(store, 'large', BACKLOG);
    const late = await makeWorkflow(store, { team: 'small' });
    for (const slots of [1, 4]) {
      const running = await claim(store, { limit: slots });
      assert.equal(running.length, slots);
      advance(1);
      const job = await makeJob(store, late);
      advance(1);
      const [first] = running;
      await failAttempt(store, heldOf(first as Job));
      const [next, ...more] = await claim(store, { limit: 1 });
      assert.deepEqual([next?.id, more.length], [job.id, 0]);
      for (const one of [...running.slice(1), next as Job]) await failAttempt(store, heldOf(one));
      advance(1);
    }
  });

  it('reserves the last place of a node for teams without running jobs there', async ({ store }) => {
    await makeJobs(store, 'flood', 5);
    const [flood] = [...(await slugsOf(store)).keys()] as [string];
    const [first] = await claim(store, { limit: 1, busy: [flood] });
    assert.ok(first, 'a single team may use all places');
    await failAttempt(store, heldOf(first));
    await makeWorkflow(store, { team: 'other' });
    assert.equal((await claim(store, { limit: 3, busy: [] })).length, 2);
    assert.equal((await claim(store, { limit: 2, busy: [flood] })).length, 1);
    assert.deepEqual(await claim(store, { limit: 1, busy: [flood] }), []);
    await makeJobs(store, 'other', 1);
    const [other, ...more] = await claim(store, { limit: 1, busy: [flood] });
    assert.deepEqual([(await slugsOf(store)).get(other?.teamId ?? ''), more.length], ['other', 0]);
  });

  it('gives the last place to a team without running jobs there, even if it has more elsewhere', async ({
    store,
  }) => {
    await makeJobs(store, 'far', 3);
    const far = (await claim(store, { limit: 2, busy: [] })).map(({ teamId }) => teamId);
    assert.equal(far.length, 2);
    await makeJobs(store, 'near', 3);
    const slugs = await slugsOf(store);
    const claimed = await claim(store, { limit: 2, busy: [] });
    assert.deepEqual(
      claimed.map(({ teamId }) => slugs.get(teamId)),
      ['near', 'far'],
    );
  });

  it('lets teams take turns on a node with one slot', async ({ store, advance }) => {
    await makeJobs(store, 'a', 4);
    await makeJobs(store, 'b', 2);
    const slugs = await slugsOf(store);
    const order: (string | undefined)[] = [];
    for (let turn = 0; turn < 6; turn++) {
      const [job] = await claim(store, { limit: 1 });
      order.push(slugs.get(job?.teamId ?? ''));
      await failAttempt(store, heldOf(job as Job));
      advance(1);
    }
    assert.deepEqual(order, ['a', 'b', 'a', 'b', 'a', 'a']);
  });

  it('continues without delay, and fairly, after the clock was set back', async ({ store, advance }) => {
    await makeJobs(store, 'a', 2);
    const slugs = await slugsOf(store);
    const [first] = await claim(store, { limit: 1 });
    await failAttempt(store, heldOf(first as Job));
    await makeJobs(store, 'b', 3);
    advance(-3_600_000);
    const order: unknown[] = [];
    for (let n = 0; n < 4; n++) {
      const [job] = await claim(store, { limit: 1 });
      assert.ok(job, 'jobs queued before are still due');
      order.push((await slugsOf(store)).get(job.teamId));
      await failAttempt(store, heldOf(job));
      advance(1);
    }
    assert.equal(slugs.size, 1);
    assert.deepEqual(order.filter((team) => team === 'a').length, 1);
    assert.notEqual(order.indexOf('a'), 3);
  });

  it('returns when a claimed job was due, also for one that waited for another', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store, { overlap: 'buffer' });
    await makeJob(store, at);
    await makeJob(store, at);
    const queuedAt = store.now();
    advance(60_000);
    const [first] = await claim(store, { limit: 1 });
    assert.equal(first?.runAt, queuedAt);
    advance(60_000);
    const endedAt = store.now();
    await failAttempt(store, heldOf(first as Job));
    advance(60_000);
    const [behind] = await claim(store, { limit: 1 });
    assert.equal(behind?.runAt, endedAt);
    const runAt = store.now() + 1_000;
    await failAttempt(store, heldOf(behind as Job), { follows: { state: 'retrying', runAt } });
    advance(60_000);
    assert.equal((await claim(store, { limit: 1 }))[0]?.runAt, runAt);
  });

  it('claims by priority, then the job that has been due longest', async ({ store, advance }) => {
    const ids: string[] = [];
    for (const priority of [0, 5, -1, 5, 0]) {
      const job = await makeJob(store, await makeWorkflow(store, { id: `w${ids.length}`, priority }));
      assert.equal(job.priority, priority);
      ids.push(job.id);
      advance(1);
    }
    const claimed = await claim(store, { limit: 10 });
    assert.deepEqual(
      claimed.map((job) => ids.indexOf(job.id)),
      [1, 3, 0, 4, 2],
    );
  });

  it('does not wait for a retry of a higher priority', async ({ store }) => {
    const high = await makeJob(store, await makeWorkflow(store, { id: 'high', priority: 9 }));
    const [first] = await claim(store, { limit: 1 });
    assert.equal(first?.id, high.id);
    const follows = { state: 'retrying', runAt: store.now() + 1 } as const;
    await failAttempt(store, heldOf(first as Job), { follows });
    const low = await makeJob(store, await makeWorkflow(store, { id: 'low' }));
    assert.deepEqual(
      (await claim(store, { limit: 5 })).map((job) => job.id),
      [low.id],
    );
  });

  it('skips jobs of excluded workflows, and claims those behind them', async ({ store }) => {
    const mine = await makeWorkflow(store, { id: 'mine' });
    const others = await makeWorkflow(store, { id: 'others', priority: 9 });
    const namesake = await makeWorkflow(store, { team: 'b', id: 'others' });
    const left = await makeJob(store, others);
    const jobs = [await makeJob(store, mine), await makeJob(store, namesake)];
    const claimed = await claim(store, { limit: 5, except: [others] });
    assert.deepEqual(
      claimed.map(({ id }) => id),
      jobs.map(({ id }) => id),
    );
    assert.deepEqual(await claim(store, { limit: 5, except: [others] }), []);
    assert.equal((await claim(store, { limit: 5 }))[0]?.id, left.id);
  });

  it('skips jobs of paused and archived workflows, also after a retry, until they are resumed', async ({
    store,
  }) => {
    const paused = await makeWorkflow(store, { id: 'paused', priority: 9, overlap: 'buffer' });
    const archived = await makeWorkflow(store, { id: 'archived', priority: 9 });
    const first = await makeJob(store, paused);
    const behind = await makeJob(store, paused);
    const other = await makeJob(store, archived);
    const [running] = await claim(store, { limit: 1 });
    assert.equal(running?.id, first.id);
    await store.workflows.pause({ teamId: paused.teamId, id: 'paused' });
    await store.workflows.archive({ teamId: paused.teamId, ids: ['archived'] });
    const job = await makeJob(store, await makeWorkflow(store, { id: 'open' }));
    assert.deepEqual(
      (await claim(store, { limit: 5 })).map(({ id }) => id),
      [job.id],
    );
    await store.jobs.release({ held: [heldOf(running as Job)] });
    assert.deepEqual(await claim(store, { limit: 5 }), []);
    await store.jobs.cancel({ teamId: paused.teamId, id: first.id, by: 'Canceled by a test' });
    assert.deepEqual(await claim(store, { limit: 5 }), [], 'the waiting job has moved up, and is paused too');
    await store.workflows.resume({ teamId: paused.teamId, id: 'paused', nextRunAt: null });
    await makeWorkflow(store, { id: 'archived', priority: 9 });
    assert.deepEqual(
      (await claim(store, { limit: 5 })).map(({ id }) => id),
      [behind.id, other.id],
    );
  });
}

async function claim(
  store: Store,
  changes: {
    limit: number;
    perTeam?: number;
    busy?: string[];
    except?: { teamId: string; workflowId: string }[];
  },
): Promise<Job[]> {
  return (await store.jobs.claim({ ...CLAIM, ...changes })).map(({ job }) => job);
}

/** Makes `count` workflows of a team, each with a job. */
async function makeJobs(store: Store, team: string, count: number): Promise<void> {
  const at = await makeMany(count, (n) => makeWorkflow(store, { team, id: `w${n}` }));
  await makeMany(count, (n) => makeJob(store, at[n] as (typeof at)[number]));
}

async function slugsOf(store: Store): Promise<Map<string, string>> {
  return new Map((await store.teams.list({ limit: 100 })).map(({ id, slug }) => [id, slug]));
}
