/** The outbox: the order and numbers of events, who receives them, and how long they are kept. */
import assert from 'node:assert/strict';
import { traceOfAttempt } from '../../observe/trace-context.ts';
import type { Store } from '../store.ts';
import { FAILED, load, oneDelivery, settle, subscribe } from './sending.ts';
import {
  allEvents,
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

export function testOutbox(open: Open): void {
  const it = caseWith(open);

  it('reports the progress of a job in order', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at);
    await publishRun(store, at, { a: 'Ada' });
    const expected = ['workflow_queued', 'workflow_started', 'workflow_data_change', 'workflow_finished'];
    const types = async () => (await allEvents(store, teamId)).map(({ type }) => type);
    assert.deepEqual(await types(), expected);
    assert.deepEqual(
      (await load(store, teamId, webhookId)).map(({ eventType }) => eventType),
      expected,
    );
    await publishRun(store, at, { a: 'Ada' });
    expected.push('workflow_queued', 'workflow_started', 'workflow_finished');
    assert.deepEqual(await types(), expected, 'nothing has changed');
    const job = await makeJob(store, at);
    await store.jobs.cancel({ teamId, id: job.id, by: 'somebody' });
    expected.push('workflow_queued', 'workflow_canceled');
    const held = await makeRunning(store, at);
    await store.jobs.cancel({ teamId, id: held.jobId, by: 'somebody' });
    await store.jobs.endCanceled({ held });
    expected.push('workflow_queued', 'workflow_started', 'workflow_canceled');
    assert.deepEqual(await types(), expected);
  });

  it('gives events the trace of their job, each with its attempt', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at);
    const trace = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`;
    await store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: null, trace });
    const first = await claimOne(store);
    const runAt = store.now();
    await failAttempt(store, first, { follows: { state: 'retrying', runAt } });
    const second = await claimOne(store);
    assert.equal((await store.jobs.get({ teamId, id: second.jobId }))?.trace, trace);
    await failAttempt(store, second);
    const ofAttempt = (attempt: number) => traceOfAttempt({ id: first.jobId, trace, attempt });
    assert.match(String(ofAttempt(1)), /^00-(ab){16}-[0-9a-f]{16}-01$/);
    assert.notEqual(ofAttempt(1), ofAttempt(2));
    const traces = async () =>
      (await load(store, teamId, webhookId)).map(({ eventType, trace }) => [eventType, trace]);
    const traced = [
      ['workflow_queued', trace],
      ['workflow_started', ofAttempt(1)],
      ['workflow_failed', ofAttempt(2)],
    ];
    assert.deepEqual(await traces(), traced);
    await makeJob(store, at);
    assert.deepEqual(await traces(), [...traced, ['workflow_queued', null]]);
  });

  it('numbers the events of a team without gaps when many callers write', async ({ store, another }) => {
    const other = await another();
    try {
      const ats = await Promise.all(
        Array.from({ length: 40 }, (_, n) =>
          makeWorkflow(store, { id: `w${n}`, team: n % 2 === 0 ? 'a' : 'b' }),
        ),
      );
      await Promise.all(
        ats.map(async (at, n) => {
          const writer = n % 3 === 0 ? other : store;
          const job = await makeJob(writer, at);
          await writer.jobs.cancel({ teamId: at.teamId, id: job.id, by: 'somebody' });
        }),
      );
      for (const teamId of new Set(ats.map((at) => at.teamId))) {
        const events = await allEvents(store, teamId);
        assert.deepEqual(
          events.map(({ sequence }) => sequence),
          Array.from({ length: 40 }, (_, n) => n + 1),
        );
        for (const { sequence, parsed } of events) assert.equal(parsed.sequence, sequence);
        assert.equal(await store.events.newestSequence({ teamId }), 40);
      }
      assert.equal(await store.events.newestSequence({ teamId: 'team_x' }), 0);
    } finally {
      await other.close();
    }
  });

  it('reads events after a sequence, and one event by its id', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const { teamId } = at;
    const [, second, third] = await store.events.list({ teamId, afterSequence: 0, limit: 9 });
    assert.deepEqual(await store.events.list({ teamId, afterSequence: 1, limit: 2 }), [second, third]);
    assert.deepEqual(await store.events.get({ teamId, id: second?.id ?? '' }), second);
    assert.equal(await store.events.get({ teamId: 'team_x', id: second?.id ?? '' }), undefined);
    assert.deepEqual(await store.events.list({ teamId, afterSequence: 4, limit: 2 }), []);
  });

  it('includes a subscription that is one millisecond old, and none that has ended', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const [late, gone] = [await subscribe(store, at, ['job.queued']), await subscribe(store, at, ['*'])];
    advance(1);
    await store.webhooks.unsubscribe({ teamId: at.teamId, ids: [gone] });
    await makeJob(store, at);
    assert.equal((await load(store, at.teamId, late)).length, 1);
    assert.deepEqual(await store.deliveries.list({ teamId: at.teamId, webhookId: gone, limit: 9 }), []);
  });

  it('expires old deliveries that were attempted or belong to a paused webhook, in steps', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const [active, paused] = [await subscribe(store, at), await subscribe(store, at, ['all'])];
    await store.webhooks.pause({ teamId, id: paused, reason: 'By hand' });
    const target = { teamId, workflowId: null };
    const wide = await subscribe(store, target, ['workflow_queued', 'x']);
    await publishRun(store, at, { a: 'Ada' });
    const [sent] = await load(store, teamId, wide);
    await settle(store, sent, 1, { state: 'delivered' });
    const [first, second, third, ...more] = await load(store, teamId, active);
    const [untried] = more;
    const later = { state: 'waiting', nextAt: store.now() } as const;
    for (const due of [first, third]) await settle(store, due, 1, later, FAILED);
    advance(1_000);
    const expire = () => allSteps(store.deliveries.expire, { teamId, olderMs: 1_000, limit: 2 });
    await expire();
    const states = async (webhookId: string) =>
      (await store.deliveries.list({ teamId, webhookId, limit: 9 })).map(({ state }) => state);
    assert.deepEqual(await states(paused), Array(4).fill('waiting'), 'not yet');
    advance(1);
    await makeJob(store, at);
    await expire();
    const waiting = (await load(store, teamId, active)).map(({ id }) => id);
    const [newest] = await store.deliveries.list({ teamId, webhookId: active, limit: 1 });
    const expected = [second, ...more, newest].map((due) => due?.id);
    assert.deepEqual(waiting, expected, 'these were never attempted');
    assert.deepEqual(await states(paused), ['waiting', 'dead', 'dead', 'dead', 'dead']);
    assert.deepEqual(await states(wide), ['waiting', 'delivered']);
    await settle(store, untried, 1, later, FAILED);
    await expire();
    assert.equal((await store.deliveries.get({ teamId, id: untried?.id ?? '' }))?.state, 'dead');
    await store.webhooks.pause({ teamId, id: active, reason: 'By hand' });
    await expire();
    assert.equal((await store.deliveries.get({ teamId, id: second?.id ?? '' }))?.state, 'dead');
  });

  it('expires deliveries after many that were never attempted in the same round', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { team: 'other' });
    const ids = [await subscribe(store, at, ['job.queued']), await subscribe(store, other, ['job.queued'])];
    for (const to of [at, other]) {
      for (let n = 0; n < 7; n++) {
        const job = await makeJob(store, to);
        await store.jobs.cancel({ teamId: to.teamId, id: job.id, by: 'somebody' });
      }
    }
    advance(1_000);
    const tried: string[] = [];
    for (const [n, { teamId }] of [at, other].entries()) {
      const last = (await load(store, teamId, ids[n] ?? '')).at(-1);
      await settle(store, last, 1, { state: 'waiting', nextAt: store.now() }, FAILED);
      tried.push(last?.id ?? '');
    }
    for (const { teamId } of [at, other]) {
      const steps = await allSteps(store.deliveries.expire, { teamId, olderMs: 1, limit: 3 });
      assert.ok(steps < 10, `${steps} steps`);
    }
    for (const [n, { teamId }] of [at, other].entries()) {
      const dead = await store.deliveries.list({
        teamId,
        webhookId: ids[n] ?? '',
        states: ['dead'],
        limit: 9,
      });
      assert.deepEqual(
        dead.map(({ id }) => id),
        [tried[n]],
      );
    }
  });

  it('prunes old attempts, and keeps their deliveries', async ({ store }) => {
    const { teamId, due } = await oneDelivery(store);
    const now = store.now();
    const attempts = [1, 2, 3].map((days) => ({ ...FAILED, startedAt: now - (4 - days) * DAY }));
    for (const [n, log] of attempts.entries()) {
      await settle(store, due, n + 1, { state: 'waiting', nextAt: now }, log);
    }
    await pruneAll(store, { teamId, attemptsMs: 1.5 * DAY, eventsMs: 30 * DAY });
    const found = await store.deliveries.get({ teamId, id: due.id });
    assert.deepEqual([found?.attempt, found?.attempts], [3, attempts.slice(2)]);
    assert.equal(found?.last?.at, now - DAY);
    await pruneAll(store, { teamId, attemptsMs: DAY / 2, eventsMs: 30 * DAY });
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.last, null);
  });

  it('prunes old events with their deliveries, except the newest event and those with waiting deliveries', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { team: 'other' });
    const { teamId } = at;
    const webhookId = await subscribe(store, at);
    await publishRun(store, at, { a: 'Ada' });
    const [first, second, third, fourth] = await load(store, teamId, webhookId);
    for (const due of [first, third, fourth]) await settle(store, due, 1, { state: 'delivered' });
    const [replayed] = (await store.deliveries.replay({ teamId, ids: [third?.id ?? ''] })) ?? [];
    const keep = { teamId, attemptsMs: 1e15, eventsMs: 30 * DAY };
    advance(30 * DAY);
    await pruneAll(store, keep);
    const sequences = async (team = teamId) =>
      (await store.events.list({ teamId: team, afterSequence: 0, limit: 9 })).map(({ sequence }) => sequence);
    assert.deepEqual(await sequences(), [1, 2, 3, 4], 'not yet');
    advance(1);
    await makeJob(store, other);
    for (const { teamId } of [at, other]) await pruneAll(store, { ...keep, teamId });
    assert.deepEqual(await sequences(), [2, 3, 4]);
    assert.deepEqual(await sequences(other.teamId), [1]);
    assert.equal(await store.deliveries.get({ teamId, id: first?.id ?? '' }), undefined);
    assert.equal((await store.deliveries.get({ teamId, id: third?.id ?? '' }))?.attempts.length, 1);

    await settle(store, second, 1, { state: 'dead' }, FAILED);
    const [again] = (await load(store, teamId, webhookId)).filter(({ id }) => id === replayed?.id);
    await settle(store, again, 1, { state: 'delivered' });
    await pruneAll(store, keep);
    assert.deepEqual(await sequences(), [4]);
    const left = await store.deliveries.list({ teamId, webhookId, limit: 9 });
    assert.deepEqual(
      left.map(({ id }) => id),
      [fourth?.id],
    );
    assert.equal(await store.events.newestSequence({ teamId }), 4);
    await makeJob(store, at);
    assert.deepEqual(await sequences(), [4, 5]);
  });

  it('prunes removed webhooks after a while, once they have no deliveries left', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const subscribed = (name: string) => subscribe(store, at, ['workflow_queued', name]);
    const [used, stays, ...unused] = await Promise.all(['a', 'b', 'c', 'd', 'e'].map(subscribed));
    await store.webhooks.unsubscribe({ teamId, ids: unused });
    const job = await makeJob(store, at);
    await store.webhooks.unsubscribe({ teamId, ids: [used as string] });
    const forget = async (limit = 2) => {
      let all = 0;
      const prune: typeof store.webhooks.prune = async (input) => {
        const step = await store.webhooks.prune(input);
        all += step.pruned;
        return step;
      };
      await allSteps(prune, { teamId, olderMs: DAY, limit });
      return all;
    };
    assert.equal(await forget(), 0, 'not yet');
    advance(DAY + 1);
    assert.equal(await forget(1), 3);
    const [delivery] = await store.deliveries.list({ teamId, webhookId: used as string, limit: 9 });
    assert.equal(delivery?.state, 'canceled');
    await store.jobs.cancel({ teamId, id: job.id, by: 'somebody' });
    const [waiting] = await load(store, teamId, stays as string);
    await settle(store, waiting, 1, { state: 'delivered' });
    await pruneAll(store, { teamId: at.teamId, attemptsMs: 0, eventsMs: 0 });
    assert.equal(await forget(), 1);
    assert.equal(await forget(), 0);
    assert.deepEqual(
      (await store.webhooks.list({ teamId, limit: 100 })).map(({ id }) => id),
      [stays],
    );
  });

  it('prunes old events after one that is dated in the future', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const makeAndCancel = async () => {
      const job = await makeJob(store, at);
      await store.jobs.cancel({ teamId: at.teamId, id: job.id, by: 'somebody' });
    };
    advance(365 * DAY);
    await makeAndCancel();
    advance(-365 * DAY);
    await makeAndCancel();
    advance(2 * DAY);
    await makeAndCancel();
    await pruneAll(store, { teamId: at.teamId, attemptsMs: DAY, eventsMs: DAY });
    const left = (await allEvents(store, at.teamId)).map(({ sequence }) => sequence);
    assert.deepEqual(left, [1, 2, 5, 6], 'the first two are from next year');
  });

  it('deletes an event with more deliveries than one step deletes', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const ids = await Promise.all(
      Array.from({ length: 12 }, (_, n) => subscribe(store, at, ['workflow_queued', String(n)])),
    );
    const job = await makeJob(store, at);
    await store.jobs.cancel({ teamId, id: job.id, by: 'somebody' });
    await store.webhooks.unsubscribe({ teamId, ids });
    advance(2 * DAY);
    const steps = await pruneAll(store, { teamId: at.teamId, attemptsMs: DAY, eventsMs: DAY }, 5);
    assert.ok(steps > 2 && steps < 12, `${steps} steps`);
    assert.equal((await allEvents(store, teamId)).length, 1);
    for (const webhookId of ids) {
      assert.deepEqual(await store.deliveries.list({ teamId, webhookId, limit: 9 }), []);
    }
  });
}

const DAY = 86_400_000;

/** Deletes old rows of a team. Returns the number of steps. */
function pruneAll(
  store: Store,
  input: { teamId: string; attemptsMs: number; eventsMs: number },
  limit = 2,
): Promise<number> {
  return allSteps(store.deliveries.prune, { ...input, limit });
}
