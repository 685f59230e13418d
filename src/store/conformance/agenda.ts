/** The agenda: which teams have something to do, so that nobody searches all teams. */

import assert from 'node:assert/strict';
import type { DueDelivery } from '../../model/delivery.ts';
import { USAGE_GRACE_MS } from '../../model/usage.ts';
import type { Store } from '../store.ts';
import type { AgendaItem } from '../transaction.ts';
import { ORDERED } from './many-deliveries.ts';
import { dueLanes, FAILED, load, MANY, OK, oneDelivery, settle, subscribe } from './sending.ts';
import { caseWith, countUsage, makeJob, makeWorkflow, type Open, publishRun } from './setup.ts';

export function testAgenda(open: Open): void {
  const it = caseWith(open);

  it('a team is on no agenda before it has done anything', async ({ store }) => {
    await store.teams.ensure({ slug: 'acme' });
    for (const item of ITEMS) assert.deepEqual(await due(store, item), []);
  });

  it('a queued job puts its team on the agenda for jobs, usage and pruning', async ({ store }) => {
    const { teamId, workflowId } = await makeWorkflow(store);
    await store.teams.ensure({ slug: 'idle' });
    await makeJob(store, { teamId, workflowId });
    for (const item of ['jobs', 'usage', 'prune'] as const) {
      assert.deepEqual(await due(store, item), [teamId], item);
    }
    assert.deepEqual(await due(store, 'lanes'), [], 'no webhook waits');
  });

  it('a list of due teams continues after a time', async ({ store, advance }) => {
    const until = Number.MAX_SAFE_INTEGER;
    await makeJob(store, await makeWorkflow(store));
    const [first] = await store.agenda.due({ item: 'jobs', until, limit: 9 });
    advance(1);
    const { teamId } = await makeWorkflow(store, { team: 'acme' });
    await makeJob(store, { teamId, workflowId: 'people' });
    const rest = await store.agenda.due({ item: 'jobs', after: first?.at ?? 0, until, limit: 9 });
    assert.deepEqual(rest, [{ teamId, at: store.now() }]);
  });

  it('a delivery puts its team on the agenda for lanes', async ({ store }) => {
    const at = await makeWorkflow(store);
    await subscribe(store, at, ['workflow_queued']);
    assert.deepEqual(await due(store, 'lanes'), []);
    await makeJob(store, at);
    assert.deepEqual(await due(store, 'lanes'), [at.teamId]);
  });

  it('counting takes a team off the agenda for usage, and a new event puts it back', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const job = await makeJob(store, at);
    await countUsage(store, GRACE);
    assert.deepEqual(await due(store, 'usage'), []);
    const counted = async () => (await store.usage.read({ ...USAGE, teamId: at.teamId })).countedUntil;
    advance(3_600_000);
    assert.equal(await counted(), store.now() - GRACE.graceMs, 'nothing has happened since');
    await store.jobs.cancel({ teamId: at.teamId, id: job.id, by: 'somebody' });
    assert.deepEqual(await due(store, 'usage'), [at.teamId]);
    const since = store.now();
    advance(3_600_000);
    assert.equal(await counted(), since - GRACE.graceMs, 'the events are not counted yet');
  });

  it('a team whose deliveries wait is due for counting a minute after its lanes', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const webhookId = await subscribe(store, at, ['workflow_queued']);
    await makeJob(store, at);
    await countUsage(store, GRACE);
    const [usage] = await store.agenda.due({ item: 'usage', until: store.now() + HOUR_MS, limit: 9 });
    assert.deepEqual(usage, { teamId: at.teamId, at: store.now() + GRACE.graceMs });
    const [delivery] = await load(store, at.teamId, webhookId);
    await settle(store, delivery, 1, { state: 'delivered' }, { ...OK, startedAt: store.now() });
    advance(GRACE.graceMs);
    await countUsage(store, GRACE);
    assert.deepEqual(await due(store, 'usage'), []);
    const { periods } = await store.usage.read({ ...USAGE, teamId: at.teamId });
    assert.deepEqual(
      periods.map(({ delivered }) => delivered),
      [1],
    );
  });

  it('events that do not end do not postpone a visit', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const [first] = await store.agenda.due({ item: 'prune', until: store.now() + HOUR_MS, limit: 9 });
    for (let minute = 0; minute < 4; minute++) {
      advance(60_000);
      await publishRun(store, at, { a: `${minute}` });
    }
    const [last] = await store.agenda.due({ item: 'prune', until: store.now() + HOUR_MS, limit: 9 });
    assert.deepEqual(last, first);
  });

  it('a visit is repeated when something is old, after a day, or soon if there were events', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    await publishRun(store, at, { a: 'Ada' });
    const sequence = await store.events.newestSequence({ teamId });
    const next = async (input: { sequence: number; at: number | null }) => {
      await store.agenda.visited({ teamId, ...input });
      const [found] = await store.agenda.due({ item: 'prune', until: Number.MAX_SAFE_INTEGER, limit: 9 });
      return found === undefined ? undefined : found.at - store.now();
    };
    assert.equal(await next({ sequence, at: store.now() + HOUR_MS }), HOUR_MS);
    assert.equal(await next({ sequence, at: store.now() + 99 * HOUR_MS }), 24 * HOUR_MS);
    assert.equal(await next({ sequence: sequence - 1, at: null }), 300_000);
    assert.equal(await next({ sequence, at: null }), undefined);
    for (const item of ['jobs', 'lanes', 'usage', 'decisions', 'fresh'] as const) {
      assert.deepEqual(
        await due(store, item),
        [teamId],
        `a visit makes ${item} due, in case their time is wrong`,
      );
    }
  });

  it('a visit does not miss an inspector or an audit line written meanwhile without an event', async ({
    store,
  }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    const next = async () => {
      await store.agenda.visited({ teamId, sequence: 0, at: null });
      const [found] = await store.agenda.due({ item: 'prune', until: Number.MAX_SAFE_INTEGER, limit: 9 });
      return found === undefined ? undefined : found.at - store.now();
    };
    assert.equal(await next(), undefined);
    await store.audit.add({ change: { teamId, action: 'keys.create', target: null, summary: '' } });
    assert.equal(await next(), 24 * HOUR_MS);
    for (const [id, forMs] of [
      ['insp_later', 2 * HOUR_MS],
      ['insp_first', HOUR_MS],
    ] as const) {
      await store.inspectors.create({ teamId, id, status: 204, delayMs: 0, forMs, most: 9 });
    }
    assert.equal(await next(), HOUR_MS);
  });

  it('a webhook with old deliveries is looked at again within an hour', async ({ store, advance }) => {
    const { teamId, due: kept } = await oneDelivery(store);
    advance(2_000);
    const expire = () => store.deliveries.expire({ teamId, olderMs: 1_000, limit: 9 });
    assert.deepEqual(
      await expire(),
      { done: true, at: store.now() + HOUR_MS },
      'it waits for its first attempt',
    );
    await settle(store, kept, 1, { state: 'waiting', nextAt: store.now() }, FAILED);
    advance(HOUR_MS);
    await expire();
    assert.equal((await store.deliveries.get({ teamId, id: kept.id }))?.state, 'dead');
  });

  it('a search for due deliveries that finds none says when the next one is due', async ({
    store,
    advance,
  }) => {
    const { teamId, webhookId, due: sent } = await oneDelivery(store);
    const nextAt = store.now() + 60_000;
    await settle(store, sent, 1, { state: 'waiting', nextAt }, FAILED);
    // The time is raised when it is 10 s in the past: not after every delivery.
    const lanesAt = async () => {
      advance(10_000);
      assert.equal((await dueLanes(store)).size, 0);
      const teams = await store.agenda.due({ item: 'lanes', until: Number.MAX_SAFE_INTEGER, limit: 9 });
      return teams.map(({ at }) => at);
    };
    assert.deepEqual(await lanesAt(), [nextAt]);
    await store.webhooks.pause({ teamId, id: webhookId, reason: 'By hand' });
    assert.deepEqual(await lanesAt(), [store.now() + HOUR_MS], 'deliveries of paused webhooks are not due');
    await store.webhooks.resume({ teamId, id: webhookId });
    advance(40_000);
    assert.deepEqual(await dueLanes(store), new Set([webhookId]));
    const again = await load(store, teamId, webhookId);
    await settle(store, again[0] as DueDelivery, 2, { state: 'delivered' });
    assert.deepEqual(await lanesAt(), [], 'nothing waits');
    await store.webhooks.test({ teamId, id: webhookId });
    assert.deepEqual(await dueLanes(store), new Set([webhookId]));
  });

  it('the next delivery of an ordered webhook is found when the one before it has ended', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const webhookId = await subscribe(store, at, ['x'], ORDERED);
    for (let n = 0; n < 2; n += 1) await store.webhooks.test({ teamId: at.teamId, id: webhookId });
    const [first] = await store.deliveries.load({
      teamId: at.teamId,
      webhookId,
      limits: MANY,
      ordered: true,
    });
    await settle(store, first as DueDelivery, 1, { state: 'waiting', nextAt: store.now() + HOUR_MS }, FAILED);
    advance(10_000);
    assert.equal((await dueLanes(store)).size, 0);
    // Another node, which had lost the lane, reports its success late.
    await settle(store, first as DueDelivery, 1, { state: 'delivered' });
    advance(30_000);
    assert.deepEqual(await dueLanes(store), new Set([webhookId]));
  });

  it('an audit line puts its team on the agenda for pruning within a day', async ({ store }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'acme' });
    await store.audit.add({ change: { teamId, action: 'keys.create', target: null, summary: '' } });
    const teams = await store.agenda.due({ item: 'prune', until: store.now() + 24 * HOUR_MS, limit: 9 });
    assert.deepEqual(
      teams.map((team) => team.teamId),
      [teamId],
    );
  });
}

const HOUR_MS = 3_600_000;
const GRACE = { graceMs: USAGE_GRACE_MS, limit: 100 };
const USAGE = { kind: 'team', subject: '', period: 'day', from: 0, until: Number.MAX_SAFE_INTEGER } as const;
const ITEMS: readonly AgendaItem[] = ['jobs', 'lanes', 'usage', 'prune', 'decisions', 'fresh'];

/** The teams on an agenda within the next hour. */
async function due(store: Store, item: AgendaItem): Promise<string[]> {
  const teams = await store.agenda.due({ item, until: store.now() + 3_600_000, limit: 10 });
  return teams.map(({ teamId }) => teamId);
}
