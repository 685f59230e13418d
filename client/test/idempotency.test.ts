/** Calls that create something send an idempotency key if the route accepts one, so that retries create nothing more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routes } from '../../src/http/routes.ts';
import { startReceiver } from '../../test/support/receiver.ts';
import { startService } from '../../test/support/service.ts';
import { Flowhook, type KeyedOptions } from '../src/flowhook-client.ts';

/** Every method that sends an idempotency key, by its route. */
const KEYED: Record<string, (flowhook: Flowhook, options: KeyedOptions) => Promise<unknown>> = {
  'POST /v1/workflows/w/queue': ({ workflows }, options) => workflows.queue('w', options),
  'POST /v1/workflows/w/push': ({ workflows }, options) => workflows.push('w', [], options),
  'POST /v1/jobs/j/rerun': ({ jobs }, options) => jobs.rerun('j', options),
  'POST /v1/integrations/webhooks/wh_1/test': ({ webhooks }, options) => webhooks.test('wh_1', options),
  'POST /v1/integrations/webhooks/wh_1/replay': ({ webhooks }, options) =>
    webhooks.replay('wh_1', ['d'], options),
  'POST /v1/workflows/w/feeds': ({ feeds }, options) => feeds.create('w', {}, options),
  'POST /v1/keys': ({ keys }, options) => keys.create({}, options),
  'POST /v1/deliveries/retry': ({ deliveries }, options) => deliveries.retry({}, options),
  'POST /v1/deliveries/d/replay': ({ deliveries }, options) => deliveries.replay('d', options),
};

test('every method whose route accepts a key sends the given key, or a random one', async () => {
  const keyed = routes
    .filter(({ operation }) => operation.parameters?.some(({ name }) => name === 'idempotency-key'))
    .map(({ method, path }) => `${method} ${path}`);
  assert.equal(Object.keys(KEYED).length, keyed.length, keyed.join(', '));
  for (const [route, call] of Object.entries(KEYED)) {
    const keys: (string | null)[] = [];
    const flowhook = new Flowhook({
      url: 'http://flowhook.test',
      key: 'k',
      fetch: async (input, init) => {
        assert.equal(`${init?.method} ${new URL(String(input)).pathname}`, route);
        keys.push(new Headers(init?.headers).get('idempotency-key'));
        return keys.length === 1 ? new Response('{}', { status: 503 }) : new Response('{"replay":{}}');
      },
    });
    await call(flowhook, {});
    assert.match(keys[0] ?? '', /^[0-9a-f]{32}$/, route);
    assert.equal(keys[1], keys[0], `${route} is retried with the same key`);
    await call(flowhook, { idempotencyKey: 'mine' });
    assert.equal(keys[2], 'mine', route);
    await call(flowhook, {});
    assert.notEqual(keys[3], keys[0], `${route} is another call`);
  }
});

test('tests and replays that are repeated with one key are sent once', async (t) => {
  const service = await startService({ workflows: { 'default/inbox.yaml': 'source: { type: push }\n' } });
  const receiver = await startReceiver();
  t.after(async () => {
    await service.stop();
    await receiver.stop();
  });
  const { webhooks, deliveries } = new Flowhook({ url: service.url, key: service.key });
  const { id } = await webhooks.create({ url: receiver.url, events: ['webhook_test'] });
  const once = { idempotencyKey: 'once' };
  const tested = await webhooks.test(id, once);
  assert.deepEqual(await webhooks.test(id, once), tested);
  const { deliveryId } = tested;
  const delivered = async (count: number) => {
    while ((await webhooks.deliveries(id, { state: ['delivered'] }).take(9)).length < count);
  };
  await delivered(1);
  const replayed = await deliveries.replay(deliveryId, once);
  assert.equal((await deliveries.replay(deliveryId, once)).deliveryId, replayed.deliveryId);
  await delivered(2);
  const several = await webhooks.replay(id, [deliveryId], once);
  assert.deepEqual(await webhooks.replay(id, [deliveryId], once), several);
  const since = { since: new Date(0), states: ['dead' as const] };
  const all = await webhooks.replaySince(id, since, { idempotencyKey: 'all' });
  assert.equal((await webhooks.replaySince(id, since, { idempotencyKey: 'all' })).id, all.id);
  assert.equal((await webhooks.deliveries(id).take(9)).length, 3);
  assert.notEqual((await webhooks.test(id)).deliveryId, deliveryId);
});
