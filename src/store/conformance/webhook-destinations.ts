/** Changing what people wrote about a webhook, its events and its URL. */
import assert from 'node:assert/strict';
import type { Author } from '../../model/audit.ts';
import { DEFAULT_RULE } from '../../model/rule.ts';
import { UNVERIFIED, WITHDRAWN } from '../../model/webhook.ts';
import { authoredBy } from '../audited.ts';
import { FAILED, HOLDER, load, oneDelivery, settlement, subscribe } from './sending.ts';
import { caseWith, makeJob, makeWorkflow, type Open } from './setup.ts';

const ADA: Author = { kind: 'key', id: 'key_ada', name: null, address: null, requestId: null };

export function testWebhookDestinations(open: Open): void {
  const it = caseWith(open);

  it('stores the description and the labels of a webhook', async ({ store }) => {
    const at = await makeWorkflow(store);
    const hook = { url: 'https://a.test/', events: ['*'], secret: 's', limit: 9, labels: ['customer:acme'] };
    const made = await store.webhooks.subscribe({ ...at, ...hook, description: 'For Acme' });
    assert.ok('webhook' in made);
    const target = { teamId: at.teamId, id: made.webhook.id };
    assert.deepEqual([made.webhook.description, made.webhook.labels], ['For Acme', ['customer:acme']]);
    const changed = await store.webhooks.change({ ...target, labels: ['b', 'a'] });
    assert.deepEqual([changed?.description, changed?.labels], ['For Acme', ['b', 'a']]);
    const stale = { labels: ['customer:acme'] };
    assert.equal(await store.webhooks.change({ ...target, labels: [], expected: stale }), undefined);
    const emptied = await store.webhooks.change({ ...target, labels: [], description: null });
    assert.deepEqual([emptied?.description, emptied?.labels], [null, []]);
    assert.deepEqual(await store.webhooks.get(target), emptied);
    const other = await subscribe(store, at, ['x']);
    const plain = await store.webhooks.get({ ...target, id: other });
    assert.deepEqual([plain?.description, plain?.labels], [null, []]);
  });

  it('applies new events of a webhook to later events', async ({ store }) => {
    const at = await makeWorkflow(store);
    const id = await subscribe(store, at, ['workflow_failed']);
    await makeJob(store, at);
    const target = { teamId: at.teamId, id };
    const webhook = await store.webhooks.change({ ...target, events: ['job.queued', 'job.queued'] });
    assert.deepEqual(webhook?.events, ['job.queued', 'job.queued']);
    assert.deepEqual(webhook?.was?.events, ['workflow_failed']);
    assert.deepEqual(await load(store, at.teamId, id), []);
    await makeJob(store, await makeWorkflow(store, { id: 'other' }));
    const [job] = await store.jobs.list({ teamId: at.teamId, limit: 9 });
    assert.ok(job);
    await store.jobs.cancel({ teamId: at.teamId, id: job.id, by: 'somebody' });
    const wide = await subscribe(store, { teamId: at.teamId, workflowId: null }, ['workflow_failed']);
    await store.webhooks.change({ teamId: at.teamId, id: wide, events: ['workflow_queued'] });
    await makeJob(store, await makeWorkflow(store, { id: 'third' }));
    const types = (await load(store, at.teamId, wide)).map(({ eventType }) => eventType);
    assert.deepEqual(types, ['workflow_queued']);
    const same = await store.webhooks.change({ ...target, events: ['job.queued', 'job.queued'] });
    assert.equal(same?.was, undefined, 'nothing has changed');
  });

  it('sends waiting deliveries to the new URL, whose health is not known', async ({ store }) => {
    const { teamId, webhookId: id, due } = await oneDelivery(store);
    const open = { state: 'open', since: 5, until: 90_000, failures: 10, openedAt: 5 } as const;
    const one = settlement(due, 1, { state: 'waiting', nextAt: store.now() }, FAILED);
    await store.deliveries.settle({ settlements: [{ ...one, health: 'failing', breaker: open }] });
    const url = 'https://b.test/new?x=1';
    const webhook = await store.webhooks.change({ teamId, id, url });
    assert.deepEqual(
      [webhook?.url, webhook?.state, webhook?.failingSince, webhook?.breaker, webhook?.lastSuccessAt],
      [url, 'active', null, null, null],
    );
    const [lane] = await store.deliveries.lanes(HOLDER);
    assert.deepEqual(
      [lane?.url, lane?.failingSince, lane?.breaker, lane?.secrets],
      [url, null, null, ['sealed']],
    );
    assert.deepEqual(
      (await load(store, teamId, id)).map((delivery) => delivery.id),
      [due.id],
    );
    await store.webhooks.change({ teamId, id, url: 'https://c.test/', secret: 'second' });
    assert.deepEqual((await store.deliveries.lanes(HOLDER))[0]?.secrets, ['second'], 'without an overlap');
  });

  it('refuses a URL or events with which another webhook exists', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const hook = { url: 'https://a.test/', secret: 's', limit: 9 };
    const one = await store.webhooks.subscribe({ ...at, ...hook, events: ['a', 'b'] });
    const two = await store.webhooks.subscribe({ ...at, ...hook, events: ['c'] });
    assert.ok('webhook' in one && 'webhook' in two);
    const { id } = two.webhook;
    await assert.rejects(store.webhooks.change({ teamId, id, events: ['b', 'a'] }), {
      code: 'webhook_exists',
    });
    await store.webhooks.change({ teamId, id, url: 'https://b.test/', events: ['b', 'a'] });
    await assert.rejects(store.webhooks.change({ teamId, id, url: hook.url }), { code: 'webhook_exists' });
    const again = await store.webhooks.subscribe({ ...at, ...hook, events: ['c'] });
    assert.equal(again.outcome, 'created', 'the place is free');
    const found = await store.webhooks.subscribe({
      ...at,
      ...hook,
      url: 'https://b.test/',
      events: ['a', 'b'],
    });
    assert.ok('webhook' in found);
    assert.deepEqual([found.outcome, found.webhook.id], ['existing', id]);
    const reordered = await store.webhooks.change({ teamId, id, events: ['a', 'b'] });
    assert.deepEqual(reordered?.events, ['a', 'b']);
  });

  it('keeps the pause of a person when the URL changes', async ({ store }) => {
    const at = await makeWorkflow(store);
    const target = { teamId: at.teamId, id: await subscribe(store, at) };
    await store.webhooks.pause({ ...target, reason: 'Moving house' });
    const moved = await store.webhooks.change({ ...target, url: 'https://b.test/' });
    assert.deepEqual([moved?.state, moved?.pausedReason], ['paused', 'Moving house']);
  });

  it('waits until a new mail address is verified, unless the team has verified it', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const rule = { ...DEFAULT_RULE, format: 'mail' } as const;
    const target = { teamId, id: await subscribe(store, at) };
    const waiting = await store.webhooks.change({ ...target, url: 'mailto:ops@example.org', rule });
    assert.deepEqual(
      [waiting?.state, waiting?.pausedReason, waiting?.verifiedAt],
      ['paused', UNVERIFIED, null],
    );
    await assert.rejects(store.webhooks.resume(target), { code: 'address_unverified' });
    assert.equal((await store.webhooks.verify(target))?.state, 'active');

    const other = { teamId, id: await subscribe(store, at, ['x']) };
    const known = await store.webhooks.change({ ...other, url: 'mailto:ops@example.org', rule });
    assert.deepEqual([known?.state, known?.verifiedAt], ['active', store.now()]);
    const next = await store.webhooks.change({ ...other, url: 'mailto:dev@example.org' });
    assert.deepEqual([next?.state, next?.verifiedAt], ['paused', null]);
    const link = { ...other, url: 'mailto:ops@example.org' };
    assert.equal(await store.webhooks.verify(link), undefined, 'the link was made for another address');
    assert.equal(await store.webhooks.withdraw(link), undefined);
    const web = await store.webhooks.change({ ...other, url: 'https://a.test/web', rule: null });
    assert.deepEqual([web?.state, web?.pausedReason, web?.verifiedAt], ['active', null, null]);
  });

  it('remembers of an address how many mails it got and that its owner has unsubscribed', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const url = 'mailto:ops@example.org';
    const target = { teamId, id: await subscribe(store, at) };
    const note = async () => (await store.webhooks.noteVerificationMail(target))?.isAllowed;
    await store.webhooks.change({ ...target, url });
    for (const _ of [1, 2, 3]) assert.equal(await note(), true);
    await store.webhooks.change({ ...target, url: 'https://a.test/away' });
    await store.webhooks.change({ ...target, url });
    assert.deepEqual([await note(), await note(), await note()], [true, true, false]);

    await store.webhooks.verify(target);
    const second = { teamId, id: await subscribe(store, at, ['x']) };
    await store.webhooks.change({ ...second, url });
    await store.webhooks.withdraw(target);
    await store.webhooks.change({ ...target, url: 'mailto:dev@example.org' });
    assert.equal((await store.webhooks.get(target))?.pausedReason, UNVERIFIED);
    assert.notEqual((await store.webhooks.get(second))?.pausedReason, WITHDRAWN);
    const third = { teamId, id: await subscribe(store, at, ['y']) };
    const back = await store.webhooks.change({ ...third, url });
    assert.equal(back?.state, 'paused', 'its owner is asked again');
    assert.deepEqual(
      (await store.webhooks.list({ teamId, limit: 9 })).map(({ id }) => id),
      [target.id, second.id, third.id],
    );
  });

  it('audits where a webhook sent before and sends now, without secrets', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const ada = authoredBy(store, ADA);
    const hook = { url: 'https://u:p@a.test/x?token=hush&b#c', events: ['*'], secret: 's', limit: 9 };
    const made = await store.webhooks.subscribe({ ...at, ...hook });
    assert.ok('webhook' in made);
    const target = { teamId, id: made.webhook.id };
    await ada.webhooks.change({ ...target, url: 'https://b.test/y', secret: 't', name: 'Acme' });
    await ada.webhooks.change({ ...target, events: ['job.failed'], labels: ['a'] });
    await ada.webhooks.change({ ...target, description: 'For Acme' });
    const { lines } = await store.audit.list({ teamId, limit: 9 });
    const at1 = { url: 'https://b.test/y', events: ['*'] };
    assert.deepEqual(
      lines.map(({ summary, details }) => [summary, details]),
      [
        ['description', {}],
        ['events, labels', { before: at1, after: { ...at1, events: ['job.failed'] } }],
        [
          'url, secret, name',
          { before: { url: 'https://***@a.test/x?token=***&***#***', events: ['*'] }, after: at1 },
        ],
      ],
    );
  });
}
