/** Rules of webhooks: decisions instead of deliveries, steps, quiet records. */

import assert from 'node:assert/strict';
import type { Rule } from '../../model/rule.ts';
import type { PendingDecision } from '../operations/rules/decisions.ts';
import type { DecisionStep } from '../operations/rules/steps.ts';
import type { Store } from '../store.ts';
import { load, settle } from './sending.ts';
import { allSteps, caseWith, makeJob, makeWorkflow, type Open, publishRun } from './setup.ts';

export const RULE: Rule = {
  filter: 'record.price < 50',
  format: 'standard',
  template: null,
  firstVersion: null,
  cooldownMs: null,
  digest: null,
  timeZone: null,
};
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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
    const row = {
      workflowId,
      id: 'a',
      until: 9,
      sent: '1',
      newest: '1',
      sequence: 1,
      revision: 1,
      matches: null,
    };
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
      matches: null,
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
    assert.ok(found?.kind === 'cooldowns');
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

  it('a digest gathers rows of records and events, and becomes one event with a decision of its own', async ({
    store,
    advance,
    rows,
  }) => {
    const rule = { ...RULE, filter: null, digest: { everyMs: HOUR_MS } };
    const { at, webhookId, next } = await oneDecision(store, rule);
    const { teamId, workflowId } = at;
    const first = await next();
    const of = { teamId, webhookId, workflowId };
    const none = { until: null, rows: 0, bytes: 0, head: undefined, inForce: rule.digest };
    assert.deepEqual(await store.decisions.digest(of), none);
    const { sequence, revision } = first;
    const until = store.now() + HOUR_MS;
    const row = (key: string, newest: string, matches: number) => {
      const id = key.startsWith('=') ? key.slice(1) : '';
      return { workflowId, key, id, until, sent: null, newest, sequence, revision, matches };
    };
    const set = [row('=b', '"ä"', 2), row('!1', '{}', 1), row('+', '1', 3), row('=a', '1', 1)];
    const gathered = { ...sent(null), outcome: { state: 'gathered' } as const, quiet: { set } };
    assert.deepEqual(await stepAs(store, first, gathered), [true]);
    const { head, ...open } = await store.decisions.digest(of);
    assert.deepEqual(open, { until, rows: 3, bytes: 8, inForce: rule.digest });
    assert.deepEqual(head, set[2]);
    assert.deepEqual((await store.decisions.digest({ ...of, workflowId: 'other' })).head, undefined);
    const states = ['gathered'] as const;
    assert.equal((await store.decisions.list({ teamId, webhookId, states, limit: 9 })).length, 1);
    assert.equal(await store.decisions.raise({ teamId }), until);
    await nextEvent(store, at);
    // The clock was set back: an event without a match shortens the digest.
    const shorter = { ...sent(null), outcome: { state: 'filtered' } as const, digestUntil: until - 1 };
    assert.deepEqual(await stepAs(store, await next(), shorter), [true]);
    assert.equal(await store.decisions.raise({ teamId }), until - 1);
    assert.equal(await store.decisions.ended({ teamId, webhookId, until: until - 2, limit: 9 }), undefined);
    const ended = await store.decisions.ended({ teamId, webhookId, until: until - 1, limit: 1 });
    assert.ok(ended?.kind === 'digest');
    assert.deepEqual(
      ended.rows.map(({ key, until }) => [key, until]),
      ['!1', '+', '=a', '=b'].map((key) => [key, until - 1]),
    );
    advance(HOUR_MS);
    assert.deepEqual((await read(store, teamId)).ended, [{ webhookId }]);
    const { turn, rewrites } = ended;
    const digest = { revision, workflowId, data: { webhookId, matched: 7 } };
    const step = { webhookId, workflowId: null, sequence: 0, turn, rewrites, digest };
    assert.deepEqual(await store.decisions.step({ teamId, steps: [step] }), [true]);
    assert.deepEqual(await store.decisions.step({ teamId, steps: [step] }), [false], 'it is sent once');
    assert.equal((await rows()).quiet_record, 0);
    const { decisions, ended: others } = await read(store, teamId);
    assert.deepEqual(
      [decisions.map(({ type, isTest, revision }) => [type, isTest, revision]), others],
      [[['webhook_digest', false, 1]], []],
    );
    await stepAs(store, decisions[0] as PendingDecision, sent(null));
    const [delivery] = await load(store, teamId, webhookId);
    assert.deepEqual(JSON.parse(delivery?.body ?? '').data, digest.data);
  });

  it('a digest that is changed or removed is over, and steps of before do not count', async ({ store }) => {
    const digest = { everyMs: HOUR_MS };
    const { at, webhookId, next } = await oneDecision(store, { ...RULE, digest });
    const { teamId, workflowId } = at;
    const first = await next();
    const { sequence, revision } = first;
    const until = store.now() + HOUR_MS;
    const of = { workflowId, key: '=a', id: 'a', sent: null, newest: '1', sequence, revision, matches: 1 };
    const gathered = { outcome: { state: 'gathered' } as const, quiet: { set: [{ ...of, until }] } };
    await stepAs(store, first, { ...sent(null), ...gathered });
    await nextEvent(store, at);
    const late = await next();
    const change = (rule: Rule | null) => store.webhooks.change({ teamId, id: webhookId, rule });
    await change({ ...RULE, filter: 'record.price < 9', digest });
    const open = () => store.decisions.digest({ teamId, webhookId, workflowId });
    assert.equal((await open()).until, until, 'another filter leaves it open');
    await change({ ...RULE, digest: { everyMs: HOUR_MS / 2 } });
    assert.deepEqual([(await open()).until, (await open()).inForce], [store.now(), { everyMs: HOUR_MS / 2 }]);
    assert.deepEqual(await stepAs(store, late, { ...sent(null), ...gathered }), [false]);
    await change(null);
    assert.equal((await open()).inForce, null);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.equal(await store.decisions.endedDigest({ teamId, webhookId }), undefined);
  });

  it('of two nodes that take the same step, one counts', async ({ store, another }) => {
    const { at, webhookId, next } = await oneDecision(store);
    const other = await another();
    const decision = await next();
    const both = await Promise.all([
      stepAs(store, decision, sent('{}')),
      stepAs(other, decision, sent('{}')),
      stepAs(store, decision, { progress: {} }),
    ]);
    assert.deepEqual(both.flat().filter(Boolean).length, 1);
    await other.close();
    const decided = (await read(store, at.teamId)).decisions.length === 0;
    assert.equal((await load(store, at.teamId, webhookId)).length, decided ? 1 : 0);
  });

  it('webhooks take turns, even if more of them wait than one call returns', async ({ store }) => {
    const at = await makeWorkflow(store);
    const ids: string[] = [];
    for (const url of ['a', 'b', 'c']) ids.push(await subscribe(store, at, { url: `https://${url}.test` }));
    await makeJob(store, at);
    ids.sort();
    const found = async (after = '') => {
      const { teamId } = at;
      const { decisions } = await store.decisions.pending({ teamId, limit: 2, now: store.now(), after });
      return decisions.map(({ webhookId }) => ids.indexOf(webhookId));
    };
    assert.deepEqual(
      [await found(), await found(ids[0]), await found(ids[1])],
      [
        [0, 1],
        [1, 2],
        [0, 2],
      ],
    );
  });

  it('a message is replayed as it was sent, apart from the other message of its event', async ({
    store,
    advance,
  }) => {
    const { at, webhookId } = await twoMessages(store, advance);
    const { teamId } = at;
    const messages = async () =>
      (await load(store, teamId, webhookId)).map(({ messageId, body }) => [messageId, body]).sort();
    const original = await load(store, teamId, webhookId);
    const first = await messages();
    assert.deepEqual(new Set(first.map(([, body]) => body)), new Set(['{"own":true}', '{"late":true}']));
    for (const due of original) await settle(store, due, 1, { state: 'delivered' });
    const ids = original.map(({ id }) => id);
    advance(1);
    const made = await store.deliveries.replay({ teamId, ids });
    assert.deepEqual(
      made?.map(({ isNew }) => isNew),
      [true, true],
    );
    assert.deepEqual(await messages(), first);
    assert.deepEqual(
      (await store.deliveries.replay({ teamId, ids }))?.map(({ id }) => id),
      made?.map(({ id }) => id),
      'these are waiting',
    );
    for (const due of await load(store, teamId, webhookId)) await settle(store, due, 1, { state: 'dead' });
    const states = ['dead'] as const;
    const plan = await store.deliveries.replayable({ teamId, webhookId, states, limit: 9 });
    assert.deepEqual(plan.found.map(({ messageId }) => messageId).sort(), ['evt_late', null]);
    const replay = await store.deliveries.startReplay({ teamId, webhookId, states });
    await allSteps(store.deliveries.stepReplays, { limit: 1, waiting: 9 });
    assert.deepEqual(await messages(), first);
    const id = replay?.id ?? '';
    const [one, ...none] = await store.deliveries.replayed({ teamId, id, after: 0, limit: 1 });
    const place = { after: one?.sequence ?? 0, afterMessageId: one?.messageId ?? null };
    const [two] = await store.deliveries.replayed({ teamId, id, ...place, limit: 9 });
    assert.deepEqual([one?.messageId, two?.messageId, none.length], [null, 'evt_late', 0]);
    assert.deepEqual(
      await store.deliveries.replayed({ teamId, id, after: one?.sequence ?? 0, limit: 9 }),
      [],
    );
  });

  it('an unsubscribed webhook has no decisions and no quiet records left, however many it had', async ({
    store,
    advance,
    rows,
  }) => {
    const { at, webhookId, next } = await oneDecision(store);
    const { teamId, workflowId } = at;
    const decision = await next();
    const { sequence, revision } = decision;
    const set = Array.from({ length: 700 }, (_, n) => {
      return {
        workflowId,
        id: `${n}`,
        until: 1,
        sent: null,
        newest: null,
        sequence,
        revision,
        matches: null,
      };
    });
    await stepAs(store, decision, { ...sent(null), quiet: { set } });
    await nextEvent(store, at);
    const late = await next();
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.deepEqual(await read(store, teamId), { decisions: [], ended: [] });
    assert.equal(await store.decisions.raise({ teamId }), null);
    assert.deepEqual(await stepAs(store, late, sent('{}')), [false]);
    assert.equal(await store.decisions.ended({ teamId, webhookId, until: 9, limit: 9 }), undefined);
    await allSteps(store.deliveries.cancelRemoved, { teamId });
    const left = await rows();
    assert.deepEqual(
      [left.quiet_record, left.decision],
      [0, 1],
      'decisions are listed as long as their event',
    );
    const prune = () => allSteps(store.webhooks.prune, { teamId, olderMs: 0, limit: 9 });
    advance(1_000);
    await prune();
    assert.equal((await rows()).webhook_rule, 1);
    await nextEvent(store, at);
    advance(DAY_MS);
    await allSteps(store.deliveries.prune, { teamId, attemptsMs: 0, eventsMs: 0, limit: 1 });
    await prune();
    const { webhook, webhook_rule: rule, decision: decisions } = await rows();
    assert.deepEqual([webhook, rule, decisions], [0, 0, 0]);
  });

  it('the events and versions that a pending decision or a cooldown needs are kept', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId, workflowId } = at;
    const webhookId = await subscribe(store, at, { events: ['workflow_data_change'] });
    for (const name of ['Ada', 'Grace', 'Joan']) {
      await publishRun(store, at, { a: name });
      advance(60_000);
    }
    const keep = { keepVersions: 1, keepMs: 0, graceMs: 0 };
    const oldest = async () => (await store.records.version(at))?.oldest;
    const pruneAll = async () => {
      advance(DAY_MS);
      await allSteps(store.records.prune, { ...at, ...keep, limit: 9 });
      await allSteps(store.deliveries.prune, { teamId, attemptsMs: 0, eventsMs: 0, limit: 9 });
    };
    const types = async () =>
      (await store.events.list({ teamId, afterSequence: 0, limit: 99 })).map(({ type }) => type);
    assert.deepEqual((await store.records.prunable({ teamId, ...keep, limit: 9 })).found, []);
    await pruneAll();
    assert.equal(await oldest(), 0, 'the first event names version 1, which is compared with version 0');
    const [first] = (await read(store, teamId)).decisions;
    assert.ok(first);
    await stepAs(store, first, { ...sent(null), outcome: { state: 'filtered' }, reason: 'x' });
    await pruneAll();
    assert.equal(await oldest(), 1);
    assert.equal((await types()).filter((type) => type === 'workflow_data_change').length, 2);
    const { at: nextAt } = await store.records.prunable({ teamId, ...keep, limit: 9 });
    assert.ok(nextAt === null || nextAt > store.now(), 'is not visited again immediately');
    for (const last of [false, true]) {
      const [next] = (await read(store, teamId)).decisions;
      assert.ok(next);
      const { sequence, revision } = next;
      const until = store.now() + DAY_MS;
      const row = { workflowId, id: 'a', until, sent: '1', newest: '2', sequence, revision, matches: null };
      await stepAs(store, next, { ...sent(null), quiet: { set: last ? [row] : [] } });
    }
    for (const due of await load(store, teamId, webhookId))
      await settle(store, due, 1, { state: 'delivered' });
    await pruneAll();
    assert.equal(await oldest(), 3);
    const ended = await store.decisions.ended({ teamId, webhookId, until: store.now(), limit: 9 });
    assert.ok(ended?.kind === 'cooldowns');
    assert.equal(ended.event?.type, 'workflow_data_change');
    await store.decisions.step({
      teamId,
      steps: [
        {
          webhookId,
          workflowId,
          sequence: ended.event?.sequence ?? 0,
          turn: ended.turn,
          rewrites: ended.rewrites,
          quiet: { remove: ended.rows },
          sent: null,
        },
      ],
    });
    await pruneAll();
    assert.equal((await types()).length, 1, 'the newest event stays');
    assert.deepEqual((await store.decisions.list({ teamId, webhookId, limit: 9 })).length, 0);
  });

  it('a changed rule applies to later events only', async ({ store }) => {
    const { at, webhookId, next } = await oneDecision(store);
    const { teamId } = at;
    const change = (rule: Rule | null, expected?: { rule: Rule | null }) =>
      store.webhooks.change({ teamId, id: webhookId, rule, ...(expected && { expected }) });
    const other = { ...RULE, filter: 'true' };
    assert.equal((await change({ ...RULE }))?.ruleRevision, 1, 'the same rule is no new one');
    assert.equal(await change(other, { rule: null }), undefined);
    assert.equal((await change(other, { rule: RULE }))?.ruleRevision, 2);
    await nextEvent(store, at);
    const first = await next();
    assert.deepEqual([first.revision, first.rule], [1, RULE]);
    const mistake = { at: 1, eventId: 'evt_1', recordId: 'a', message: 'Not a number' };
    await stepAs(store, first, { ...sent(null), mistake });
    assert.deepEqual((await store.webhooks.get({ teamId, id: webhookId }))?.ruleMistake, mistake);
    const second = await next();
    assert.deepEqual([second.revision, second.rule], [2, other]);
    const plain = await change(null);
    assert.deepEqual([plain?.rule, plain?.ruleRevision, plain?.ruleMistake], [null, null, null]);
    await nextEvent(store, at);
    assert.equal((await load(store, teamId, webhookId)).length, 2, 'no decision is needed any more');
    assert.equal((await change(RULE))?.ruleRevision, 3);
  });

  it('a webhook is the same only with the same filter', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const plain = await subscribe(store, at, { rule: null });
    const filtered = await subscribe(store, at);
    const shaped = await subscribe(store, at, { rule: { ...RULE, filter: null, format: 'cloudevents' } });
    assert.equal(new Set([plain, filtered, shaped]).size, 3);
    assert.equal(await subscribe(store, at, { rule: { ...RULE, cooldownMs: 1_000 } }), filtered);
    assert.equal(
      await subscribe(store, at, { rule: { ...RULE, filter: null } }),
      plain,
      'this rule does nothing',
    );
    const collides = store.webhooks.change({ teamId, id: filtered, rule: null });
    await assert.rejects(collides, { code: 'webhook_exists', message: new RegExp(plain) });
    const renamed = await store.webhooks.change({
      teamId,
      id: filtered,
      name: 'Cheap',
      expected: { name: null },
    });
    assert.deepEqual([renamed?.name, renamed?.rule], ['Cheap', RULE]);
    assert.equal(
      await store.webhooks.change({ teamId, id: filtered, name: 'x', expected: { name: null } }),
      undefined,
    );
  });
}

interface At {
  teamId: string;
  workflowId: string;
}

async function subscribe(
  store: Store,
  at: At,
  changes: { rule?: Rule | null; url?: string; events?: string[] } = {},
) {
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

/** One pending decision of a webhook with a rule. */
async function oneDecision(store: Store, rule: Rule = RULE) {
  const at = await makeWorkflow(store);
  const webhookId = await subscribe(store, at, { rule });
  await makeJob(store, at);
  const next = async () => {
    const [found] = (await read(store, at.teamId)).decisions;
    assert.ok(found);
    return found;
  };
  return { at, webhookId, next };
}

/** A webhook with two messages about one event: the usual one, and one about an ended cooldown. */
async function twoMessages(store: Store, advance: (ms: number) => void) {
  const { at, webhookId, next } = await oneDecision(store);
  const { teamId, workflowId } = at;
  const first = await next();
  const { sequence, revision } = first;
  const row = {
    workflowId,
    id: 'a',
    until: store.now() + 1,
    sent: '1',
    newest: '2',
    sequence,
    revision,
    matches: null,
  };
  await stepAs(store, first, { ...sent('{"own":true}'), quiet: { set: [row] } });
  advance(1);
  const message = { body: '{"late":true}', messageId: 'evt_late' };
  const late = { ...first, turn: first.turn + 1 };
  assert.deepEqual(await stepAs(store, late, { sent: message, quiet: { remove: [row] } }), [true]);
  assert.equal((await store.decisions.list({ teamId, webhookId, limit: 9 })).length, 1);
  return { at, webhookId };
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
