/** Searching the deliveries of a team. */
import assert from 'node:assert/strict';
import type { Attempt } from '../../model/delivery.ts';
import type { DeliverySelection } from '../operations/deliveries/search.ts';
import type { Store } from '../store.ts';
import { FAILED, load, OK, settle, subscribe } from './sending.ts';
import { caseWith, makeJob, makeWorkflow, type Open } from './setup.ts';

/** More than are merged first. */
const WEBHOOKS = 40;
const UNAVAILABLE: Attempt = { ...FAILED, outcome: 'http', status: 503, error: 'HTTP 503: Busy at Acme' };

export function testDeliverySearch(open: Open): void {
  const it = caseWith(open);

  it('lists the deliveries to all webhooks in pages, newest first, by every filter', async (opened) => {
    const { store, advance } = opened;
    const people = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    const { teamId } = people;
    const foreign = await makeWorkflow(store, { team: 'foreign' });
    await store.webhooks.test({ teamId: foreign.teamId, id: await subscribe(store, foreign, ['a']) });
    const wide = await subscribe(store, { teamId, workflowId: null }, ['workflow_queued']);
    const webhookIds = [wide];
    for (let n = 0; n < WEBHOOKS; n++) webhookIds.push(await subscribe(store, people, [`only-${n}`]));
    const ids: string[] = [];
    const times: number[] = [];
    for (const id of webhookIds.slice(1)) {
      advance(10);
      times.unshift(store.now());
      ids.unshift((await store.webhooks.test({ teamId, id }))?.deliveryId ?? '');
    }
    advance(10);
    await makeJob(store, other);
    const [queued] = await load(store, teamId, wide);
    ids.unshift(queued?.id ?? '');
    const state = async (webhookId: string | undefined, next: 'dead' | 'delivered', log: Attempt) =>
      settle(store, (await load(store, teamId, webhookId ?? ''))[0], 1, { state: next }, log);
    await state(webhookIds[1], 'dead', FAILED);
    await state(webhookIds[9], 'delivered', OK);
    await state(webhookIds[40], 'dead', UNAVAILABLE);

    const found = async (selection: Partial<DeliverySelection>, limit = 100) =>
      (await everyPage(store, { teamId, ...selection }, limit)).map(({ id }) => ids.indexOf(id));
    const all = ids.map((_, place) => place);
    assert.deepEqual(await found({}), all);
    for (const limit of [1, 7, 41]) assert.deepEqual(await found({}, limit), all);
    assert.deepEqual(await found({ states: ['dead'] }), [1, 40]);
    assert.deepEqual(await found({ states: ['dead', 'delivered'] }, 1), [1, 32, 40]);
    assert.equal((await found({ states: ['waiting'] }, 5)).length, 38);
    assert.deepEqual(await found({ states: ['canceled'] }), []);
    assert.deepEqual(await found({ webhookId: webhookIds[9] as string }), [32]);
    await store.webhooks.change({ teamId, id: webhookIds[9] as string, labels: ['x', 'customer:acme'] });
    assert.deepEqual(await found({ label: 'customer:acme' }), [32]);
    assert.deepEqual(await found({ label: 'acme' }), []);
    assert.deepEqual(await found({ label: 'x', webhookId: webhookIds[8] as string }), []);
    assert.deepEqual(await found({ workflowId: 'other' }), [0]);
    assert.deepEqual(await found({ workflowId: 'people', states: ['dead'] }, 1), [1, 40]);
    assert.deepEqual(await found({ eventTypes: ['workflow_queued'] }), [0]);
    assert.deepEqual(await found({ eventTypes: ['workflow_queued', 'webhook_test'] }, 9), all);
    assert.deepEqual(await found({ status: { from: 500, to: 599 } }), [1]);
    assert.deepEqual(await found({ status: null }), [40]);
    assert.deepEqual(await found({ q: 'aCME' }), [1]);
    assert.deepEqual(await found({ q: 'ONLY-7' }), [33]);
    assert.deepEqual(await found({ q: ids[3] as string }), [3]);
    assert.deepEqual(await found({ q: queued?.eventId as string }), [0]);
    assert.deepEqual(await found({ q: '%' }), []);
    const [since, until] = [times[5] as number, times[2] as number];
    assert.deepEqual(await found({ since, until }, 2), [3, 4, 5, 6]);
    assert.deepEqual(await found({ since, until, states: ['waiting'] }, 3), [3, 4, 5, 6]);

    const [first] = (await store.deliveries.search({ teamId, limit: 1 })).rows;
    const {
      body: _,
      eventBody,
      attempts,
      ...summary
    } = (await store.deliveries.get({ teamId, id: ids[0] as string })) ?? assert.fail();
    assert.deepEqual(first, summary);
    assert.deepEqual(
      [first?.workflowId, first?.webhookName, first?.webhookUrl],
      ['other', null, 'https://a.test/workflow_queued'],
    );
  });

  it('ends a page that has searched many deliveries without success, and continues there', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const id = await subscribe(store, at, ['only']);
    const made: string[] = [];
    for (let n = 0; n < 21; n++) {
      const some = await Promise.all(Array.from({ length: 100 }, () => store.webhooks.test({ teamId, id })));
      made.push(...some.map((one) => one?.deliveryId ?? ''));
    }
    const oldest = made.sort()[0] as string;
    const first = await store.deliveries.search({ teamId, q: oldest, limit: 9 });
    assert.deepEqual(first.rows, []);
    assert.equal(first.next, made[100]);
    const second = await store.deliveries.search({
      teamId,
      q: oldest,
      before: first.next as string,
      limit: 9,
    });
    assert.deepEqual([second.rows.map((row) => row.id), second.next], [[oldest], null]);
  });
}

async function everyPage(store: Store, selection: DeliverySelection, limit: number) {
  const found = [];
  let next: string | null | undefined;
  do {
    const before: { before?: string } = next === undefined || next === null ? {} : { before: next };
    const page = await store.deliveries.search({ ...selection, ...before, limit });
    assert.ok(page.rows.length <= limit);
    found.push(...page.rows);
    next = page.next;
  } while (next !== null);
  return found;
}
