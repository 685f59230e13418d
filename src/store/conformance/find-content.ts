/** Finding and replacing texts that may name a person. */
import assert from 'node:assert/strict';
import type { AttemptDetails } from '../../model/delivery.ts';
import type { TextPlace } from '../operations/erasure/find-content.ts';
import type { Store } from '../store.ts';
import { HOLDER, load, OK, oneDelivery, settle, settlement, subscribe } from './sending.ts';
import { caseWith, failAttempt, makeRunning, makeWorkflow, type Open, publishRun } from './setup.ts';

const OTHER_PLACES: readonly TextPlace[] = [
  'deliveryBody',
  'decisionProgress',
  'decisionReason',
  'ruleMistake',
  'quietRecord',
  'quietSent',
  'quietNewest',
  'response',
  'attemptDetails',
  'attemptError',
  'pausedReason',
  'state',
  'fields',
  'profile',
  'quarantined',
  'quarantineReasons',
  'jobLog',
  'jobProgress',
  'inspectedRequest',
  'inspectedBody',
];

export function testHeldTexts(open: Open): void {
  const it = caseWith(open);

  it('finds texts in every place, and replaces only unchanged ones', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    await failAttempt(store, await makeRunning(store, at), { error: 'No ADA@x.test here' });
    await failAttempt(store, await makeRunning(store, other), { error: 'No ada@x.test there' });
    const find = (place: TextPlace, workflowId: string | null = null) =>
      allTexts(store, { teamId: at.teamId, workflowId, place, needles: ['ada@'] });
    assert.equal((await find('jobError')).length, 2);
    assert.equal((await find('event')).length, 2);
    const [error] = await find('jobError', 'people');
    assert.deepEqual([error?.workflowId, error?.text], ['people', 'No ADA@x.test here']);
    const key = error?.key as string;
    const rewrite = (was: string) =>
      store.erasure.rewrite({
        teamId: at.teamId,
        place: 'jobError',
        texts: [{ key, was, text: '[erased]' }],
      });
    assert.equal(await rewrite('something else'), 0);
    assert.equal(await rewrite('No ADA@x.test here'), 1);
    assert.equal((await find('jobError')).length, 1);
    for (const place of OTHER_PLACES) {
      assert.deepEqual(await find(place), [], place);
    }
    assert.deepEqual(
      await allTexts(store, { teamId: 'team_x', workflowId: null, place: 'event', needles: ['a'] }),
      [],
    );
  });

  it('finds and replaces a person in the log and the progress of a job', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    const said = ['Hello', 'No ADA@x.test here', 'Good-bye'];
    const lines = said.map((text, n) => ({ seq: n + 1, at: 1, level: 'info' as const, text }));
    const progress = { records: 1, bytes: 2, pages: null, message: 'Reading ada@x.test' };
    await store.jobs.report({ held, lines, progress });
    const find = (place: TextPlace, workflowId: string | null = 'people') =>
      allTexts(store, { teamId: at.teamId, workflowId, place, needles: ['ada@'] });
    for (const place of ['jobLog', 'jobProgress'] as const) {
      const [held, ...more] = await find(place);
      assert.ok(held && more.length === 0, place);
      assert.equal(held.workflowId, 'people');
      assert.deepEqual(await find(place, 'other'), []);
      const text = held.text.replace(/(No |Reading )ada@x.test/i, '[erased]');
      const texts = [{ key: held.key, was: held.text, text }];
      assert.equal(await store.erasure.rewrite({ teamId: at.teamId, place, texts }), 1);
      assert.deepEqual(await find(place), []);
    }
    await store.jobs.report({ held, lines: [{ seq: 4, at: 1, level: 'info', text: 'More' }] });
    const log = await store.jobs.log({ ...held, afterSeq: 0, limit: 10 });
    assert.deepEqual(
      log.map(({ text }) => text),
      ['Hello', '[erased] here', 'Good-bye', 'More'],
    );
    const job = await store.jobs.get({ teamId: at.teamId, id: held.jobId });
    assert.equal(job?.progress?.message, '[erased]');
  });

  it('finds responses by the events that they belong to', async ({ store }) => {
    const at = await makeWorkflow(store);
    const webhookId = await subscribe(store, at);
    await publishRun(store, at, { a: 'Ada' });
    const due = await load(store, at.teamId, webhookId);
    await store.deliveries.settle({
      settlements: due.map((delivery) => {
        const log = { ...OK, response: `thanks for ${delivery.eventType}` };
        return settlement(delivery, 1, { state: 'delivered' }, log);
      }),
    });
    const texts = await allTexts(store, {
      teamId: at.teamId,
      workflowId: 'people',
      place: 'response',
      needles: ['"id":"a"'],
    });
    assert.deepEqual(
      texts.map(({ text }) => text),
      ['thanks for workflow_data_change'],
    );
    assert.match(texts[0]?.about ?? '', /"differences"/);
  });

  it('stores no response to an event that was rewritten after it was loaded', async ({ store }) => {
    const { teamId, workflowId, webhookId, due: before } = await oneDelivery(store);
    const place = 'event';
    const [event] = await allTexts(store, { teamId, workflowId, place, needles: ['workflow_queued'] });
    const texts = [{ key: event?.key ?? '', was: event?.text ?? '', text: '{"erased":true}' }];
    assert.equal(await store.erasure.rewrite({ teamId, place, texts }), 1);
    const refused = { ...OK, outcome: 'http', status: 302, error: 'HTTP 302 to /ada@x.test' } as const;
    const again = { state: 'waiting', nextAt: store.now() } as const;
    await settle(store, before, 1, again, refused);
    const [after] = await load(store, teamId, webhookId);
    assert.deepEqual([after?.body, after?.rewrites], ['{"erased":true}', before.rewrites + 1]);
    assert.equal((await store.deliveries.lane({ teamId, webhookId, ...HOLDER }))?.rewrites, after?.rewrites);
    await settle(store, after, 2, again, refused);
    const { attempts = [] } = (await store.deliveries.get({ teamId, id: before.id })) ?? {};
    assert.deepEqual(
      attempts.map(({ error, response }) => [error, response]),
      [
        ['HTTP 302: the response was erased', null],
        [refused.error, OK.response],
      ],
    );
    assert.deepEqual(attempts[0]?.details, { ...OK.details, responseHeaders: {} });
    assert.deepEqual(attempts[1]?.details, OK.details);
  });

  it('finds a person in the headers of an attempt and in the reason of a pause', async ({ store }) => {
    const { teamId, workflowId, webhookId, due } = await oneDelivery(store);
    const details = { ...(OK.details as AttemptDetails), responseHeaders: { 'x-for': 'Ada@x.test' } };
    await settle(store, due, 1, { state: 'delivered' }, { ...OK, details });
    await store.webhooks.pause({ teamId, id: webhookId, reason: 'No ada@x.test here' });
    const find = (place: TextPlace, id: string | null = workflowId) =>
      allTexts(store, { teamId, workflowId: id, place, needles: ['ada@'] });
    for (const place of ['attemptDetails', 'pausedReason'] as const) {
      const [held, ...more] = await find(place);
      assert.ok(held && more.length === 0, place);
      assert.deepEqual(await find(place, 'other'), []);
      const texts = [{ key: held.key, was: held.text, text: held.text.replace(/ada@x.test/i, '[erased]') }];
      assert.equal(await store.erasure.rewrite({ teamId, place, texts }), 1);
      assert.deepEqual(await find(place), []);
    }
    const [attempt] = (await store.deliveries.get({ teamId, id: due.id }))?.attempts ?? [];
    assert.deepEqual(attempt?.details, { ...details, responseHeaders: { 'x-for': '[erased]' } });
    const webhook = await store.webhooks.get({ teamId, id: webhookId });
    assert.equal(webhook?.pausedReason, 'No [erased] here');
  });
}

async function allTexts(
  store: Store,
  input: { teamId: string; workflowId: string | null; place: TextPlace; needles: string[] },
) {
  const texts = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Store['erasure']['scanTexts']>> = await store.erasure.scanTexts({
      ...input,
      after,
    });
    texts.push(...page.texts);
    after = page.next;
  } while (after !== null);
  return texts;
}
