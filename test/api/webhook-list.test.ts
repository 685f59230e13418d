/** The list of webhooks: filtered by label and text, and sorted. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mintKey } from '../../src/teams/keys.ts';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

const HOOKS = '/v1/integrations/webhooks';

let service: TestService;
/** Names by id. */
const names = new Map<unknown, string>();

before(async () => {
  service = await startService();
  for (const [name, more] of [
    ['Zebra', { labels: ['customer:acme', 'gold'], description: 'Orders of March' }],
    ['apple', { labels: ['customer:acme'] }],
    ['', { labels: ['customer:acme-two'] }],
    ['Mango', {}],
    ['mango', { labels: ['gold'] }],
  ] as const) {
    const webhookUrl = `https://example.com/hook-${names.size}?token=hush${names.size}`;
    const body = { webhookUrl, events: ['*'], ...(name !== '' && { name }), ...more };
    const made = await service.call('POST', HOOKS, body);
    assert.equal(made.status, 200, JSON.stringify(made.body));
    names.set((made.body as Json).id, name);
  }
});
after(() => service.stop());

/** The names on all pages of a list. */
async function listed(query: string, headers = {}): Promise<(string | undefined)[]> {
  const found: (string | undefined)[] = [];
  for (let path: string | undefined = `${HOOKS}?${query}`; path !== undefined; ) {
    const answer = await service.call('GET', path, undefined, headers);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    found.push(...(answer.body as { webhooks: Json[] }).webhooks.map(({ id }) => names.get(id)));
    path = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
  }
  return found;
}

test('filters by label and by text, alone and together', async () => {
  assert.deepEqual(await listed('label=customer:acme'), ['Zebra', 'apple']);
  assert.deepEqual(await listed('q=ACME'), ['Zebra', 'apple', '']);
  assert.deepEqual(await listed('q=of+march'), ['Zebra']);
  assert.deepEqual(await listed('q=hook-3'), ['Mango']);
  assert.deepEqual(await listed('q=mango&label=gold&state=active'), ['mango']);
  assert.deepEqual(await listed('q=apple&state=paused'), []);
  const [id] = names.keys();
  assert.deepEqual(await listed(`q=${id}`), ['Zebra']);
  assert.deepEqual(await listed('label=customer:acme&limit=1'), ['Zebra', 'apple'], 'in pages');
});

test('sorts in either order, those without a value last, on pages of any size', async () => {
  for (const limit of [1, 2, 100]) {
    const page = `&limit=${limit}`;
    assert.deepEqual(await listed(`sort=name${page}`), ['apple', 'Mango', 'mango', 'Zebra', '']);
    assert.deepEqual(await listed(`sort=-name${page}`), ['Zebra', 'Mango', 'mango', 'apple', '']);
    assert.deepEqual(await listed(`sort=createdAt${page}`), [...names.values()]);
    assert.deepEqual(await listed(`sort=failingSince${page}`), [...names.values()]);
    assert.deepEqual(await listed(`sort=name&label=gold${page}`), ['mango', 'Zebra']);
  }
  assert.equal((await listed('sort=-lastSuccessAt')).length, 5);
});

test('a page continues where the last one ended, even if that webhook was removed meanwhile', async () => {
  const webhookUrl = 'https://example.com/short-lived';
  const made = await service.call('POST', HOOKS, { webhookUrl, events: ['*'], name: 'banana' });
  const first = await service.call('GET', `${HOOKS}?sort=name&limit=2`);
  assert.deepEqual(
    (first.body as { webhooks: Json[] }).webhooks.map(({ name }) => name),
    ['apple', 'banana'],
  );
  await service.call('DELETE', `${HOOKS}/unsubscribe/${(made.body as Json).id}`);
  const [, next = ''] = /<[^>]+\?([^>]+)>/.exec(first.headers.get('link') ?? '') ?? [];
  assert.deepEqual(await listed(next), ['Mango', 'mango', 'Zebra', '']);
  const swapped = await service.call('GET', `${HOOKS}?${next.replace('sort=name', 'sort=createdAt')}`);
  assert.equal(swapped.status, 400, 'the cursor belongs to another order');
});

test('a reader finds nothing by what is masked', async () => {
  const key = await mintKey(service.store, {
    teamId: service.team.id,
    name: 'test',
    scopes: ['read'],
    expiresAt: null,
  });
  const reader = { 'x-api-key': key.key };
  assert.deepEqual(await listed('q=hush3'), ['Mango']);
  assert.deepEqual(await listed('q=hush3', reader), []);
  assert.deepEqual(await listed('q=hook-3', reader), ['Mango']);
});

test('parameters that are not valid are refused', async () => {
  for (const query of [
    'sort=url',
    'sort=--name',
    'q=',
    `label=${'x'.repeat(65)}`,
    `q=${'x'.repeat(201)}`,
    'sort=name&cursor=x',
    `sort=name&cursor=${Buffer.from('["name",{},"wh_1"]').toString('base64url')}`,
    `cursor=${Buffer.from('["name","a","wh_1"]').toString('base64url')}`,
  ]) {
    const { status } = await service.call('GET', `${HOOKS}?${query}`);
    assert.equal(status, 400, query);
  }
});
