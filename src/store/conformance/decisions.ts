/** Rules of webhooks: decisions instead of deliveries, steps, quiet records. */

import assert from 'node:assert/strict';
import type { Rule } from '../../model/rule.ts';
import type { PendingDecision } from '../operations/rules/decisions.ts';
import type { DecisionStep } from '../operations/rules/steps.ts';
import type { Store } from '../store.ts';
import { load } from './sending.ts';
import { caseWith, makeJob, makeWorkflow, type Open } from './setup.ts';

export const RULE: Rule = {
  filter: 'record.price < 50',
  format: 'standard',
  template: null,
  firstVersion: null,
  cooldownMs: null,
};
const HOUR_MS = 3_600_000;

export function testDecisions(open: Open): void {
  const it = caseWith(open);

  it('a webhook with a rule gets a pending decision instead of a delivery', async ({ store }) => {
    const at = await makeWorkflow(store);
    const plain = await subscribe(store, at, { rule: null });
    const webhookId = await subscribe(store, at);
    await makeJob(store, at);
    assert.equal((await load(store, at.teamId, plain)).length, 1);
    assert.equal((await load(store, at.teamId, webhookId)).length, 0);
    const { decisions, ended } = await read(store, at.teamId);
    assert.deepEqual(ended, []);
    assert.equal(decisions.length, 1);
    const { body, eventId, ...rest } = decisions[0] as PendingDecision;
    assert.equal(JSON.parse(body).id, eventId);
    assert.deepEqual(rest, {
      webhookId,
      sequence: 1,
      type: 'workflow_queued',
      workflowId: at.workflowId,
      jobId: rest.jobId,
      createdAt: store.now(),
      revision: 1,
      rule: RULE,
      isTest: false,
      progress: null,
      hasQuiet: false,
      turn: 0,
      rewrites: 0,
    });
    const due = await store.agenda.due({ item: 'decisions', until: store.now(), limit: 9 });
    assert.deepEqual(due, [{ teamId: at.teamId, at: store.now() }]);
  });

  it('a decision continues from step to step, and sends its own body', async ({ store }) => {
    const { at, webhookId, next } = await oneDecision(store);
    const first = await next();
    assert.deepEqual(await stepAs(store, first, { progress: { after: 'a' } }), [true]);
    assert.deepEqual(await stepAs(store, first, { progress: { after: 'b' } }), [false], 'the turn is over');
    const second = await next();
    assert.deepEqual(second.progress, { after: 'a' });
    assert.deepEqual(await stepAs(store, second, sent('{"own":true}')), [true]);
    assert.deepEqual(await stepAs(store, second, sent('{"own":false}')), [false]);
    const [delivery] = await load(store, at.teamId, webhookId);
    assert.equal(delivery?.body, '{"own":true}');
    assert.equal(delivery?.messageId, first.eventId);
    assert.deepEqual((await read(store, at.teamId)).decisions, []);
    const [listed] = await store.decisions.list({ teamId: at.teamId, webhookId, limit: 9 });
    assert.deepEqual(listed, {
      webhookId,
      sequence: first.sequence,
      eventId: first.eventId,
      type: first.type,
      workflowId: at.workflowId,
      state: 'sent',
      matched: 1,
      examined: 2,
      reason: null,
      deliveryId: delivery?.id,
      createdAt: first.createdAt,
      filter: RULE.filter,
    });
    assert.equal(await store.decisions.raise({ teamId: at.teamId }), null);
  });

  it('several steps of a webhook are written together, each in its turn', async ({ store }) => {
    const { at, webhookId } = await oneDecision(store);
    const { teamId, workflowId } = at;
    for (let n = 0; n < 3; n += 1) await nextEvent(store, at);
    const { decisions } = await store.decisions.pending({ teamId, limit: 9, each: 3, now: store.now() });
    assert.deepEqual(
      decisions.map(({ sequence }) => sequence),
      [1, 2, 3],
    );
    const row = { workflowId, id: 'a', until: 9, sent: '1', newest: '1', sequence: 1, revision: 1 };
    const basis = (place: number, turn: number) => {
      const { sequence, rewrites } = decisions[place] as PendingDecision;
      return { webhookId, workflowId, sequence, rewrites, turn };
    };
    const steps: DecisionStep[] = [
      { ...basis(0, 0), progress: 1, quiet: { set: [row, { ...row, id: 'b' }] } },
      {
        ...basis(0, 1),
        ...sent(null),
        quiet: { set: [{ ...row, newest: '2' }], remove: [{ ...row, id: 'b' }] },
      },
      { ...basis(1, 3), ...sent(null) },
      { ...basis(1, 2), ...sent(null), outcome: { state: 'filtered' }, reason: '0 of 2 differences match' },
    ];
    assert.deepEqual(await store.decisions.step({ teamId, steps }), [true, true, false, true]);
    const quiet = await store.decisions.quiet({ teamId, webhookId, workflowId, ids: ['a', 'b'] });
    assert.deepEqual(quiet, [{ ...row, newest: '2' }]);
    assert.equal((await load(store, teamId, webhookId)).length, 1);
    const [next] = (await read(store, teamId)).decisions;
    assert.deepEqual([next?.sequence, next?.turn], [3, 3]);
    const states = async (filter: object) =>
      (await store.decisions.list({ teamId, limit: 9, ...filter })).map(({ sequence, state }) => [
        sequence,
        state,
      ]);
    assert.deepEqual(await states({ webhookId, states: ['filtered', 'pending'] }), [
      [4, 'pending'],
      [3, 'pending'],
      [2, 'filtered'],
    ]);
    assert.deepEqual(await states({ webhookId, before: { sequence: 2, webhookId } }), [[1, 'sent']]);
    assert.deepEqual(await states({ eventId: decisions[1]?.eventId }), [[2, 'filtered']]);
    assert.deepEqual(await states({ eventId: decisions[1]?.eventId, webhookId: 'other' }), []);
    assert.deepEqual((await states({})).length, 4);
    assert.deepEqual(await states({ states: [] }), []);
  });

  it('a test of a webhook with a format is a decision whose delivery has the id that was returned', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const plain = await subscribe(store, at);
    const shaped = await subscribe(store, at, {
      rule: { ...RULE, format: 'cloudevents' },
      url: 'https://b.example',
    });
    const made = await store.webhooks.test({ teamId, id: plain });
    assert.equal((await store.deliveries.get({ teamId, id: made?.deliveryId ?? '' }))?.origin, 'test');
    const test = await store.webhooks.test({ teamId, id: shaped });
    const [decision] = (await read(store, teamId)).decisions;
    assert.equal(decision?.isTest, true);
    await stepAs(store, decision as PendingDecision, { progress: {} });
    const [again] = (await read(store, teamId)).decisions;
    await stepAs(store, again as PendingDecision, sent('{"specversion":"1.0"}'));
    const delivery = await store.deliveries.get({ teamId, id: test?.deliveryId ?? '' });
    assert.deepEqual(
      [delivery?.origin, delivery?.body, delivery?.eventId],
      ['test', '{"specversion":"1.0"}', test?.eventId],
    );
  });

  it('a step that was computed before an erasure does not count', async ({ store }) => {
    const { at, next } = await oneDecision(store);
    const { teamId, workflowId } = at;
    const before = await next();
    const [event] = await store.events.list({ teamId, afterSequence: 0, limit: 1 });
    const text = {
      key: '[1]',
      was: event?.body ?? '',
      text: (event?.body ?? '').replace('queued', 'Queued'),
    };
    await store.erasure.rewrite({ teamId, place: 'event', texts: [text] });
    assert.deepEqual(await stepAs(store, before, sent('erased')), [false]);
    assert.equal((await next()).rewrites, before.rewrites + 1);
    assert.equal(workflowId, before.workflowId);
  });

  it('records are quiet until their cooldown ends, and then go into one message of their own', async ({
    store,
    advance,
  }) => {
    const { at, webhookId, next } = await oneDecision(store);
    const { teamId, workflowId } = at;
    const first = await next();
    const row = (id: string, newest: string) => ({
      workflowId,
      id,
      until: store.now() + HOUR_MS,
      sent: '{"price":1}',
      newest,
      sequence: first.sequence,
      revision: first.revision,
    });
    const long = 'ä'.repeat(1_000);
    const rows = [row('a', '{"price":1}'), row(long, '{"price":2}')];
    await stepAs(store, first, { ...sent(null), quiet: { set: rows } });
    assert.equal(await store.decisions.raise({ teamId }), store.now() + HOUR_MS);
    assert.deepEqual(await store.decisions.quiet({ teamId, webhookId, workflowId, ids: [long, 'b'] }), [
      rows[1],
    ]);
    assert.deepEqual((await read(store, teamId)).ended, []);
    advance(HOUR_MS);
    assert.deepEqual((await read(store, teamId)).ended, [{ webhookId }]);
    const found = await store.decisions.ended({ teamId, webhookId, until: store.now(), limit: 9 });
    assert.ok(found);
    assert.deepEqual(found.rows, rows.toSorted((a, b) => (`=${a.id}` < `=${b.id}` ? -1 : 1)).toReversed());
    assert.equal(found.event?.eventId, first.eventId);
    assert.deepEqual(found.rule, RULE);
    const step = {
      webhookId,
      workflowId,
      sequence: first.sequence,
      turn: found.turn,
      rewrites: found.rewrites,
      quiet: { remove: found.rows },
      sent: { body: '{"late":true}', messageId: 'evt_late' },
    };
    assert.deepEqual(await store.decisions.step({ teamId, steps: [step] }), [true]);
    assert.deepEqual(await store.decisions.step({ teamId, steps: [step] }), [false]);
    const deliveries = await load(store, teamId, webhookId);
    assert.deepEqual(
      deliveries.map(({ messageId, body }) => [messageId, body === '{"late":true}']),
      [
        [first.eventId, false],
        ['evt_late', true],
      ],
    );
    assert.equal(await store.decisions.raise({ teamId }), null);
  });
}

interface At {
  teamId: string;
  workflowId: string;
}

async function subscribe(store: Store, at: At, changes: { rule?: Rule | null; url?: string } = {}) {
  const made = await store.webhooks.subscribe({
    ...at,
    url: 'https://a.example/hook',
    events: ['workflow_queued', 'workflow_canceled'],
    secret: 'sealed',
    limit: 50,
    rule: RULE,
    ...changes,
  });
  assert.ok('webhook' in made);
  return made.webhook.id;
}

function read(store: Store, teamId: string) {
  return store.decisions.pending({ teamId, limit: 100, now: store.now() });
}

/** Adds an event of the workflow. */
async function nextEvent(store: Store, { teamId, workflowId }: At): Promise<void> {
  const jobs = await store.jobs.recent({ teamId, workflowIds: [workflowId], each: 1 });
  const [newest] = jobs.get(workflowId) ?? [];
  if (newest?.state !== 'queued') await makeJob(store, { teamId, workflowId });
  else await store.jobs.cancel({ teamId, id: newest.id, by: 'somebody' });
}

/** One pending decision of a webhook with `RULE`. */
async function oneDecision(store: Store) {
  const at = await makeWorkflow(store);
  const webhookId = await subscribe(store, at);
  await makeJob(store, at);
  const next = async () => {
    const [found] = (await read(store, at.teamId)).decisions;
    assert.ok(found);
    return found;
  };
  return { at, webhookId, next };
}

const sent = (body: string | null) => ({
  outcome: { state: 'sent', body, messageId: null } as const,
  matched: 1,
  examined: 2,
  reason: null,
});

type Rest = DecisionStep extends infer Step ? (Step extends DecisionStep ? Partial<Step> : never) : never;

/** Takes a step that was computed from this decision. */
async function stepAs(store: Store, decision: PendingDecision, changes: Rest): Promise<boolean[]> {
  const event = await store.events.get({ teamId: JSON.parse(decision.body).teamId, id: decision.eventId });
  const { webhookId, workflowId, sequence, turn, rewrites } = decision;
  const step = { webhookId, workflowId, sequence, turn, rewrites, ...changes } as DecisionStep;
  return store.decisions.step({ teamId: event?.teamId ?? '', steps: [step] });
}
