/** Webhooks that send mail: their addresses are verified before anything is sent, and can be withdrawn. */
import assert from 'node:assert/strict';
import { UNVERIFIED, WITHDRAWN } from '../../model/webhook.ts';
import { MAX_VERIFICATION_MAILS_OF_TEAM } from '../operations/mail/addresses.ts';
import type { Store } from '../store.ts';
import { caseWith, makeWorkflow, type Open } from './setup.ts';

const DAY_MS = 86_400_000;

export function testMailAddresses(open: Open): void {
  const it = caseWith(open);

  async function subscribed(store: Store, at: { teamId: string; workflowId: string }, more: object = {}) {
    const hook = { url: 'mailto:ops@example.org', events: ['*'], secret: 'sealed', limit: 10 };
    const result = await store.webhooks.subscribe({ ...at, ...hook, ...more });
    assert.ok('webhook' in result);
    return { ...result.webhook, outcome: result.outcome };
  }

  it('pauses a webhook that sends mail until its address is verified, however often it is subscribed', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const { id, ...made } = await subscribed(store, at);
    assert.deepEqual(
      [made.state, made.pausedAt, made.pausedReason, made.verifiedAt],
      ['paused', store.now(), UNVERIFIED, null],
    );
    const again = await subscribed(store, at);
    assert.deepEqual([again.id, again.outcome, again.state], [id, 'existing', 'paused']);
    await assert.rejects(store.webhooks.resume({ teamId: at.teamId, id }), { code: 'address_unverified' });

    const verified = await store.webhooks.verify({ teamId: at.teamId, id });
    assert.deepEqual(
      [verified?.state, verified?.pausedReason, verified?.verifiedAt],
      ['active', null, store.now()],
    );
    assert.deepEqual(await store.webhooks.verify({ teamId: at.teamId, id }), verified);
    await store.webhooks.pause({ teamId: at.teamId, id, reason: 'For a test' });
    assert.equal((await store.webhooks.verify({ teamId: at.teamId, id }))?.state, 'paused');
    assert.equal((await store.webhooks.resume({ teamId: at.teamId, id }))?.state, 'active');
  });

  it('verifies an address once for all webhooks of a team', async ({ store }) => {
    const at = await makeWorkflow(store);
    const first = await subscribed(store, at);
    const second = await subscribed(store, at, { events: ['job.failed'] });
    const other = await subscribed(store, at, { url: 'mailto:dev@example.org' });
    const foreign = await subscribed(store, await makeWorkflow(store, { team: 'other' }));
    await store.webhooks.verify({ teamId: at.teamId, id: first.id });
    const states = async () =>
      Promise.all([first, second, other, foreign].map(async (one) => (await store.webhooks.get(one))?.state));
    assert.deepEqual(await states(), ['active', 'active', 'paused', 'paused']);
    const third = await subscribed(store, at, { events: ['workflow_finished'] });
    assert.deepEqual([third.outcome, third.state, third.verifiedAt], ['created', 'active', store.now()]);
  });

  it('pauses a webhook whose recipient has unsubscribed, until the recipient verifies the address again', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const [first, second] = [await subscribed(store, at), await subscribed(store, at, { events: ['x'] })];
    await store.webhooks.verify({ teamId, id: first.id });
    const ended = await store.webhooks.withdraw({ teamId, id: first.id });
    assert.deepEqual([ended?.state, ended?.pausedReason, ended?.verifiedAt], ['paused', WITHDRAWN, null]);
    assert.deepEqual(await store.webhooks.withdraw({ teamId, id: first.id }), ended);
    await assert.rejects(store.webhooks.resume({ teamId, id: first.id }), { code: 'address_unverified' });
    assert.equal((await subscribed(store, at)).state, 'paused');
    assert.equal((await store.webhooks.get(second))?.state, 'active');
    // Somebody who wants no mail is asked again before a new webhook sends some.
    const third = await subscribed(store, at, { events: ['y'] });
    assert.equal(third.state, 'paused');
    await store.webhooks.verify({ teamId, id: third.id });
    assert.equal((await store.webhooks.get(first))?.state, 'paused');
    await store.webhooks.verify({ teamId, id: first.id });
    assert.equal((await store.webhooks.get(first))?.state, 'active');

    // The same holds if the webhook that they unsubscribed from was removed.
    await store.webhooks.withdraw({ teamId, id: third.id });
    await store.webhooks.unsubscribe({ teamId, ids: [third.id] });
    assert.equal((await subscribed(store, at, { events: ['y'] })).state, 'paused');

    const web = await subscribed(store, at, { url: 'https://a.test/' });
    for (const id of [web.id, 'wh_unknown']) {
      assert.equal(await store.webhooks.verify({ teamId, id }), undefined);
      assert.equal(await store.webhooks.withdraw({ teamId, id }), undefined);
    }
    assert.equal((await store.webhooks.get(web))?.state, 'active');
  });

  it('allows five verification mails to an address within a day, also if the webhook is subscribed again', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const note = async (id: string) => (await store.webhooks.noteVerificationMail({ teamId, id }))?.isAllowed;
    const { id } = await subscribed(store, at);
    for (const _ of [1, 2, 3]) assert.equal(await note(id), true);
    await store.webhooks.unsubscribe({ teamId, ids: [id] });
    assert.equal(await note(id), undefined);
    const again = await subscribed(store, at);
    const other = await subscribed(store, at, { url: 'mailto:dev@example.org' });
    assert.deepEqual([await note(again.id), await note(again.id), await note(again.id)], [true, true, false]);
    assert.equal(await note(other.id), true);
    advance(DAY_MS);
    assert.equal(await note(again.id), true);
    advance(-2 * DAY_MS);
    assert.equal(await note(again.id), true, 'the clock was set back');
  });

  it('counts the spellings of an address as one, and all verification mails of a team', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const note = async (url: string) => {
      const { id } = await subscribed(store, at, { url: `mailto:${url}`, limit: 1_000 });
      return (await store.webhooks.noteVerificationMail({ teamId, id }))?.isAllowed;
    };
    const spellings = ['ops@example.org', 'Ops@example.org', 'ops+a@example.org', 'oPs+b+c@example.org'];
    for (const one of spellings) assert.equal(await note(one), true);
    assert.equal(await note('+ops@example.org'), true, 'this is no tag');
    assert.equal(await note('ops+d@example.org'), true);
    assert.equal(await note('ops+e@example.org'), false);
    for (let n = 6; n < MAX_VERIFICATION_MAILS_OF_TEAM; n += 1)
      assert.equal(await note(`a${n}@example.org`), true);
    assert.equal(await note('last@example.org'), false);
  });
}
