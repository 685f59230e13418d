/** Inspectors and the requests that they store. */
import assert from 'node:assert/strict';
import type { InspectedRequest } from '../../model/inspector.ts';
import type { Store } from '../store.ts';
import { subscribe } from './sending.ts';
import { allSteps, caseWith, makeWorkflow, type Open } from './setup.ts';

const DAY_MS = 86_400_000;
const REQUEST: InspectedRequest = {
  method: 'POST',
  path: '/inspect/insp_1?x=1',
  headers: { host: 'flowhook.test' },
  body: '{"id":"a"}',
  bodyBytes: 10,
  truncated: false,
  signature: { verdict: 'absent', message: 'The request is not signed', webhookId: null },
};

export function testInspectors(open: Open): void {
  const it = caseWith(open);

  it('creates inspectors up to the limit of a team, for a day', async ({ store, advance }) => {
    const { teamId } = await makeWorkflow(store);
    const first = await make(store, teamId, 'insp_1', 2);
    assert.deepEqual(first, {
      teamId,
      id: 'insp_1',
      status: 204,
      delayMs: 0,
      received: 0,
      createdAt: store.now(),
      expiresAt: store.now() + DAY_MS,
    });
    advance(1_000);
    await make(store, teamId, 'insp_2', 2);
    assert.equal(await make(store, teamId, 'insp_3', 2), undefined);
    const ids = async () => (await store.inspectors.list({ teamId })).map(({ id }) => id);
    assert.deepEqual(await ids(), ['insp_1', 'insp_2']);
    assert.deepEqual(await store.inspectors.find({ id: 'insp_1' }), first);
    advance(DAY_MS - 1_000);
    assert.deepEqual(await ids(), ['insp_2']);
    assert.equal(await store.inspectors.find({ id: 'insp_1' }), undefined);
    assert.equal(await store.inspectors.change({ teamId, id: 'insp_1', status: 500 }), undefined);
    assert.equal(await keep(store, teamId, 'insp_1'), undefined);
    assert.notEqual(await make(store, teamId, 'insp_3', 2), undefined);
  });

  it('creates no more than the limit in simultaneous calls', async ({ store }) => {
    const { teamId } = await makeWorkflow(store);
    const made = await Promise.all([1, 2, 3, 4].map((n) => make(store, teamId, `insp_${n}`, 2)));
    assert.equal(made.filter((one) => one !== undefined).length, 2);
  });

  it('changes the response of an inspector of the same team only', async ({ store }) => {
    const { teamId } = await makeWorkflow(store);
    const { teamId: other } = await makeWorkflow(store, { team: 'other' });
    await make(store, teamId, 'insp_1');
    assert.equal((await store.inspectors.change({ teamId, id: 'insp_1', delayMs: 500 }))?.status, 204);
    const changed = await store.inspectors.change({ teamId, id: 'insp_1', status: 410 });
    assert.deepEqual([changed?.status, changed?.delayMs], [410, 500]);
    assert.equal(await store.inspectors.change({ teamId: other, id: 'insp_1', status: 200 }), undefined);
    assert.deepEqual(await store.inspectors.list({ teamId: other }), []);
    assert.deepEqual(await store.inspectors.requests({ teamId: other, id: 'insp_1', limit: 9 }), []);
    assert.equal(await store.inspectors.remove({ teamId: other, id: 'insp_1' }), false);
  });

  it('stores the newest requests completely, and returns them in pages', async ({ store }) => {
    const { teamId } = await makeWorkflow(store);
    await make(store, teamId, 'insp_1');
    const numbers = await Promise.all([1, 2, 3, 4, 5].map(() => keep(store, teamId, 'insp_1', { most: 3 })));
    assert.deepEqual(numbers.sort(), [1, 2, 3, 4, 5]);
    assert.equal((await store.inspectors.find({ id: 'insp_1' }))?.received, 5);
    const list = async (page: { after?: number; before?: number; limit: number }) =>
      (await store.inspectors.requests({ teamId, id: 'insp_1', ...page })).map(({ number }) => number);
    assert.deepEqual(await list({ limit: 9 }), [5, 4, 3]);
    assert.deepEqual(await list({ before: 5, limit: 1 }), [4]);
    assert.deepEqual(await list({ after: 4, limit: 9 }), [5]);
    await keep(store, teamId, 'insp_1', { body: 'ä💥\n"' });
    const [newest] = await store.inspectors.requests({ teamId, id: 'insp_1', limit: 1 });
    assert.deepEqual(newest, { ...REQUEST, body: 'ä💥\n"', number: 6, receivedAt: store.now() });
  });

  it('removes an inspector with its requests, and expired ones in steps', async ({ store, advance }) => {
    const { teamId } = await makeWorkflow(store);
    for (const id of ['insp_1', 'insp_2', 'insp_3']) {
      await make(store, teamId, id);
      for (let n = 0; n < 3; n++) await keep(store, teamId, id);
    }
    assert.equal(await store.inspectors.remove({ teamId, id: 'insp_1' }), true);
    assert.equal(await store.inspectors.remove({ teamId, id: 'insp_1' }), false);
    assert.deepEqual(await store.inspectors.requests({ teamId, id: 'insp_1', limit: 9 }), []);
    assert.deepEqual(await store.inspectors.prune({ teamId, limit: 9 }), {
      done: true,
      at: store.now() + DAY_MS,
    });
    assert.equal((await store.inspectors.list({ teamId })).length, 2);
    advance(DAY_MS);
    assert.equal((await store.inspectors.prune({ teamId, limit: 4 })).done, false);
    await allSteps(store.inspectors.prune, { teamId, limit: 4 });
    assert.deepEqual(await store.inspectors.requests({ teamId, id: 'insp_2', limit: 9 }), []);
    assert.notEqual(await make(store, teamId, 'insp_2'), undefined);
  });

  it('lists possible signers: the webhooks of an event and those of a URL, with both secrets', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const tested = await subscribe(store, at, ['a']);
    const made = await store.webhooks.test({ teamId, id: tested });
    const url = 'http://127.0.0.1/inspect/insp_1';
    const { webhook } = (await store.webhooks.subscribe({
      ...at,
      url,
      events: ['*'],
      secret: 'sealed',
      limit: 9,
    })) as Extract<Awaited<ReturnType<Store['webhooks']['subscribe']>>, { webhook: unknown }>;
    await store.webhooks.rotate({ teamId, id: webhook.id, secret: 'newer', overlapMs: 1_000 });
    const of = (eventId: string, where = url, team = teamId) =>
      store.inspectors.signers({ teamId: team, eventId, url: where, limit: 9 });
    const both = await of(made?.eventId ?? '');
    assert.deepEqual(both.map(({ webhookId }) => webhookId).sort(), [tested, webhook.id].sort());
    assert.deepEqual(await of('evt_\0'), [{ webhookId: webhook.id, secrets: ['newer', 'sealed'] }]);
    advance(2_000);
    assert.deepEqual(await of('nothing'), [{ webhookId: webhook.id, secrets: ['newer'] }]);
    assert.deepEqual(await of('nothing', 'http://elsewhere/'), []);
    assert.deepEqual(await of(made?.eventId ?? '', url, 'team_x'), []);
  });

  it('finds a person in stored requests, by the workflow of the event', async ({ store }) => {
    const { teamId } = await makeWorkflow(store);
    await make(store, teamId, 'insp_1');
    const body = '{"data":{"differences":[{"id":"a"}]}}';
    await keep(store, teamId, 'insp_1', { body, workflowId: 'people' });
    await keep(store, teamId, 'insp_1', { body: 'hello ada@x.test', path: '/?ada@x.test' });
    const scan = async (
      place: 'inspectedBody' | 'inspectedRequest',
      workflowId: string | null,
      needle: string,
    ) => (await store.erasure.scanTexts({ teamId, workflowId, place, needles: [needle], after: null })).texts;
    assert.equal((await scan('inspectedBody', 'people', '"id":"a"')).length, 1);
    assert.equal((await scan('inspectedBody', 'other', '"id":"a"')).length, 0);
    assert.equal((await scan('inspectedRequest', null, 'ada@')).length, 1);
    const [held] = await scan('inspectedBody', null, 'ada@');
    const texts = [{ key: held?.key ?? '', was: held?.text ?? '', text: '[erased]' }];
    assert.equal(await store.erasure.rewrite({ teamId, place: 'inspectedBody', texts }), 1);
    const [newest] = await store.inspectors.requests({ teamId, id: 'insp_1', limit: 1 });
    assert.equal(newest?.body, '[erased]');
  });
}

function make(store: Store, teamId: string, id: string, most = 9) {
  return store.inspectors.create({ teamId, id, status: 204, delayMs: 0, forMs: DAY_MS, most });
}

function keep(
  store: Store,
  teamId: string,
  id: string,
  {
    most = 9,
    workflowId = null,
    ...changes
  }: Partial<InspectedRequest> & { most?: number; workflowId?: string | null } = {},
) {
  return store.inspectors.storeRequest({ teamId, id, workflowId, request: { ...REQUEST, ...changes }, most });
}
