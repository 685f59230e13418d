/** The history of events, newest first, with filters, and the deliveries of one event. */
import assert from 'node:assert/strict';
import { subscribe } from './sending.ts';
import {
  allEvents,
  caseWith,
  claimOne,
  failAttempt,
  makeJob,
  makeWorkflow,
  type Open,
  publishRun,
} from './setup.ts';

const idsOf = (events: readonly { id: string }[]) => events.map(({ id }) => id);

export function testEventHistory(open: Open): void {
  const it = caseWith(open);

  it('reads events in pages, newest first', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    for (const name of ['Ada', 'Grace', 'Joan']) await publishRun(store, at, { a: name });
    const all = (await allEvents(store, teamId)).toReversed();
    const found = [];
    let before: string | undefined;
    do {
      const page = await store.events.history({ teamId, limit: 5, ...(before && { before }) });
      assert.ok(page.events.length <= 5);
      found.push(...page.events);
      before = page.next ?? undefined;
    } while (before !== undefined);
    assert.deepEqual(idsOf(found), idsOf(all));
    assert.equal(found[0]?.body, all[0]?.body);
    assert.deepEqual(await store.events.history({ teamId: 'team_x', limit: 5 }), { events: [], next: null });
  });

  it('filters by workflow, job, type and time', async ({ store, advance }) => {
    const [at, other] = [await makeWorkflow(store), await makeWorkflow(store, { id: 'other' })];
    const { teamId } = at;
    await publishRun(store, other, { a: 'Ada' });
    await publishRun(store, at, { a: 'Ada' });
    advance(60_000);
    const since = store.now();
    await publishRun(store, at, { a: 'Grace' });
    const [last] = await store.jobs.list({ teamId, workflowId: at.workflowId, limit: 1 });
    const until = store.now();
    advance(60_000);
    await makeJob(store, other);
    const all = (await allEvents(store, teamId)).toReversed();
    const read = async (filter: object) =>
      idsOf((await store.events.history({ teamId, limit: 100, ...filter })).events);
    const { workflowId } = at;
    assert.deepEqual(
      await read({ workflowId }),
      idsOf(all.filter((event) => event.workflowId === workflowId)),
    );
    assert.deepEqual(
      await read({ workflowId, jobId: last?.id }),
      idsOf(all.filter((event) => event.jobId === last?.id)),
    );
    assert.deepEqual(
      await read({ types: ['workflow_finished'] }),
      idsOf(all.filter(({ type }) => type === 'workflow_finished')),
    );
    const then = all.filter(({ createdAt }) => createdAt >= since && createdAt <= until);
    assert.deepEqual(await read({ since, until }), idsOf(then));
    assert.ok(then.length > 0 && then.length < all.length);
  });

  it('lists the events of a workflow while its jobs wait, run, retry and end', async ({ store, advance }) => {
    const at = await makeWorkflow(store, { overlap: 'buffer' });
    const { teamId, workflowId } = at;
    const check = async () => {
      const all = (await allEvents(store, teamId)).toReversed();
      const found = [];
      let before: string | undefined;
      do {
        const page = await store.events.history({ teamId, workflowId, limit: 2, ...(before && { before }) });
        found.push(...page.events);
        before = page.next ?? undefined;
      } while (before !== undefined);
      assert.deepEqual(idsOf(found), idsOf(all));
      for (const jobId of new Set(all.map((event) => event.jobId ?? ''))) {
        const { events } = await store.events.history({ teamId, workflowId, jobId, limit: 100 });
        assert.deepEqual(idsOf(events), idsOf(all.filter((event) => event.jobId === jobId)));
      }
      assert.ok(all.length > 0);
    };
    await makeJob(store, at);
    const second = await makeJob(store, at);
    await check();
    const held = await claimOne(store);
    await check();
    await store.jobs.cancel({ teamId, id: second.id, by: 'Canceled by a test' });
    await check();
    await makeJob(store, at);
    await failAttempt(store, held, { follows: { state: 'retrying', runAt: store.now() + 1_000 } });
    await check();
    advance(1_000);
    await claimOne(store);
    await check();
  });

  it('finds the deliveries of an event to any webhook', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const [first, second] = [
      await subscribe(store, at, ['*']),
      await subscribe(store, at, ['workflow_queued']),
    ];
    await makeJob(store, at);
    const [event] = await allEvents(store, teamId);
    const sequence = event?.sequence ?? 0;
    const read = (input: { before?: string; limit: number }) =>
      store.deliveries.ofEvent({ teamId, sequence, ...input });
    const found = await read({ limit: 10 });
    assert.deepEqual(new Set(found.map(({ webhookId }) => webhookId)), new Set([first, second]));
    assert.ok(found.every(({ eventId }) => eventId === event?.id));
    const [newest] = await read({ limit: 1 });
    assert.deepEqual(newest, found[0]);
    assert.deepEqual(await read({ before: newest?.id ?? '', limit: 10 }), found.slice(1));
    assert.deepEqual(await store.deliveries.ofEvent({ teamId, sequence: 99, limit: 10 }), []);
  });
}
