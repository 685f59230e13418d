/** Subscribing and unsubscribing webhooks. */
import assert from 'node:assert/strict';
import { DEFAULT_WEBHOOK_SETTINGS } from '../../model/webhook.ts';
import { HOLDER } from './sending.ts';
import { caseWith, makeJob, makeWorkflow, type Open } from './setup.ts';

export function testWebhooks(open: Open): void {
  const it = caseWith(open);
  const hook = {
    url: 'https://a.test/?x=1',
    events: ['job.completed', 'x', 'x'],
    secret: 'sealed',
    limit: 10,
  };

  it('subscribes a URL unchanged, and lists it immediately', async ({ store }) => {
    const at = await makeWorkflow(store);
    const result = await store.webhooks.subscribe({ ...at, ...hook });
    assert.equal(result.outcome, 'created');
    const { webhook } = result as { webhook: { id: string } };
    assert.deepEqual(webhook, {
      teamId: at.teamId,
      id: webhook.id,
      workflowId: 'people',
      url: hook.url,
      events: hook.events,
      state: 'active',
      settings: DEFAULT_WEBHOOK_SETTINGS,
      pausedAt: null,
      pausedReason: null,
      failingSince: null,
      breaker: null,
      name: null,
      description: null,
      labels: [],
      rule: null,
      ruleRevision: null,
      ruleMistake: null,
      lastSuccessAt: null,
      verifiedAt: null,
      createdAt: store.now(),
    });
    assert.deepEqual(await store.webhooks.list({ teamId: at.teamId, limit: 100 }), [webhook]);
    assert.deepEqual(await store.webhooks.get({ teamId: at.teamId, id: webhook.id }), webhook);
    const sealed = { secret: 'sealed', headers: null };
    assert.deepEqual(await store.webhooks.sealed({ teamId: at.teamId, id: webhook.id }), sealed);
    assert.equal(await store.webhooks.sealed({ teamId: 'team_x', id: webhook.id }), undefined);
    assert.equal(await store.webhooks.get({ teamId: 'team_x', id: webhook.id }), undefined);
  });

  it('returns the existing webhook for the same workflow, URL and set of events', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    const first = await store.webhooks.subscribe({ ...at, ...hook });
    const twins = await Promise.all(
      [['x', 'job.completed'], hook.events].map((events) =>
        store.webhooks.subscribe({ ...at, ...hook, events, secret: 'other' }),
      ),
    );
    for (const twin of twins) assert.deepEqual(twin, { ...first, outcome: 'existing' });
    for (const different of [{ ...other }, { ...at, events: ['x'] }, { ...at, url: 'https://b.test/' }]) {
      assert.equal((await store.webhooks.subscribe({ ...hook, ...different })).outcome, 'created');
    }
    assert.equal((await store.webhooks.list({ teamId: at.teamId, limit: 100 })).length, 4);
    assert.equal(
      (await store.webhooks.list({ teamId: at.teamId, workflowId: 'other', limit: 100 })).length,
      1,
    );
    const byUrl = (workflowId?: string) =>
      store.webhooks.list({
        teamId: at.teamId,
        url: hook.url,
        ...(workflowId === undefined ? {} : { workflowId }),
        limit: 100,
      });
    assert.equal((await byUrl()).length, 3);
    assert.equal((await byUrl('people')).length, 2);
    assert.equal((await byUrl('unknown')).length, 0);
  });

  it('resumes a paused webhook that is subscribed again', async ({ store }) => {
    const at = await makeWorkflow(store);
    await store.webhooks.subscribe({ ...at, ...hook });
    const [webhook] = await store.webhooks.list({ teamId: at.teamId, limit: 100 });
    await store.webhooks.pause({ teamId: at.teamId, id: webhook?.id ?? '', reason: 'For a test' });
    assert.equal((await store.webhooks.list({ teamId: at.teamId, limit: 100 }))[0]?.state, 'paused');
    assert.deepEqual(await store.webhooks.subscribe({ ...at, ...hook }), {
      outcome: 'existing',
      webhook,
      resumed: true,
    });
  });

  it('does not subscribe to an unknown, archived or foreign workflow', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { id: otherTeam } = await store.teams.ensure({ slug: 'other' });
    await store.workflows.archive({ teamId: at.teamId, ids: ['people'] });
    for (const target of [at, { ...at, workflowId: 'unknown' }, { ...at, teamId: otherTeam }]) {
      assert.deepEqual(await store.webhooks.subscribe({ ...target, ...hook }), {
        outcome: 'workflow_not_found',
      });
    }
  });

  it('limits the active webhooks of a workflow; repeated calls succeed', async ({ store }) => {
    const at = await makeWorkflow(store);
    const subscribe = (n: number) =>
      store.webhooks.subscribe({ ...at, ...hook, url: `https://a.test/${n}`, limit: 2 });
    const outcomes = [];
    for (const n of [1, 2, 3, 1]) outcomes.push((await subscribe(n)).outcome);
    assert.deepEqual(outcomes, ['created', 'created', 'limit_reached', 'existing']);
    const [first] = await store.webhooks.list({ teamId: at.teamId, limit: 100 });
    await store.webhooks.unsubscribe({ teamId: at.teamId, ids: [first?.id ?? ''] });
    assert.equal((await subscribe(3)).outcome, 'created');
  });

  it('unsubscribes immediately, cancels waiting deliveries, and never restores a webhook', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    await store.webhooks.subscribe({ ...at, ...hook, events: ['*'] });
    const [webhook] = await store.webhooks.list({ teamId: at.teamId, limit: 100 });
    const target = { teamId: at.teamId, webhookId: webhook?.id ?? '' };
    await makeJob(store, at);
    assert.equal((await store.deliveries.lanes(HOLDER)).length, 1);
    const ids = [target.webhookId, 'wh_unknown', target.webhookId];
    assert.equal(await store.webhooks.unsubscribe({ teamId: 'team_x', ids }), 0);
    assert.equal(await store.webhooks.unsubscribe({ teamId: at.teamId, ids }), 1);
    assert.equal(await store.webhooks.unsubscribe({ teamId: at.teamId, ids }), 0);
    assert.deepEqual(await store.webhooks.list({ teamId: at.teamId, limit: 100 }), []);
    assert.equal(await store.webhooks.get({ teamId: at.teamId, id: target.webhookId }), undefined);
    assert.equal(await store.webhooks.sealed({ teamId: at.teamId, id: target.webhookId }), undefined);
    assert.deepEqual(await store.deliveries.lanes(HOLDER), []);
    assert.deepEqual(
      (await store.deliveries.list({ ...target, limit: 5 })).map((delivery) => delivery.state),
      ['canceled'],
    );
    const again = await store.webhooks.subscribe({ ...at, ...hook, events: ['*'] });
    assert.equal(again.outcome, 'created');
  });
}
