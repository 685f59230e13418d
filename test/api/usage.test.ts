/** Usage over HTTP. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { countUsage } from '../../src/store/conformance/setup.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const service = await startService({
  workflows: {
    'default/people.yaml': 'source: { type: push }\n',
    'default/orders.yaml': 'source: { type: push }\n',
    'other/private.yaml': 'source: { type: push }\n',
  },
});
const receiver = await startReceiver();
after(async () => {
  await service.stop();
  await receiver.stop();
});

interface Usage {
  by: string;
  from: string;
  to: string;
  countedUntil: string;
  buckets: { start: string; jobs?: unknown; records?: unknown; deliveries?: Record<string, unknown> }[];
}

const push = async (workflowId: string, records: object[]) => {
  const answer = await service.call('POST', `/v1/workflows/${workflowId}/push`, records);
  assert.equal(answer.status, 200);
};
const usage = async (query: string) => {
  const answer = await service.call('GET', `/v1/usage${query}`);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body as Usage;
};

test('shows all usage of a team, jobs and records of a workflow, and deliveries of a webhook', async () => {
  const webhookUrl = receiver.url;
  const body = { workflowId: 'people', webhookUrl, events: ['workflow_finished'] };
  const subscribed = await service.call('POST', '/v1/integrations/webhooks/subscribe', body);
  const webhookId = subscribed.headers.get('x-webhook-id');
  await push('people', [{ id: 1 }, { id: 2 }]);
  await push('people', [{ id: 2, name: 'Ada' }]);
  await push('orders', [{ id: 1 }]);
  await receiver.until((all) => all.length === 2, 'two deliveries');
  // A received delivery may not be stored yet.
  for (let delivered = 0; delivered < 2; ) {
    const path = `/v1/integrations/webhooks/${webhookId}/deliveries?state=delivered`;
    delivered = ((await service.call('GET', path)).body as { deliveries: object[] }).deliveries.length;
  }
  await countUsage(service.store, { graceMs: 0, limit: 100 });

  const all = (await usage('?by=day')).buckets.at(-1);
  assert.deepEqual(all?.jobs, { finished: 3, failed: 0, canceled: 0 });
  assert.deepEqual(all?.records, { added: 3, changed: 1, removed: 1 });
  const { latencyMs, ...deliveries } = all?.deliveries ?? {};
  assert.deepEqual(deliveries, { delivered: 2, failedAttempts: 0, dead: 0 });
  const { p50, p95 } = latencyMs as { p50: number; p95: number };
  assert.ok(p50 >= 0 && p50 <= p95);

  const people = (await usage('?by=day&workflowId=people')).buckets.at(-1);
  assert.deepEqual(Object.keys(people ?? {}), ['start', 'jobs', 'records']);
  assert.deepEqual(people?.jobs, { finished: 2, failed: 0, canceled: 0 });
  const sent = (await usage(`?by=day&webhookId=${webhookId}`)).buckets.at(-1);
  assert.deepEqual(Object.keys(sent ?? {}), ['start', 'deliveries']);
  assert.equal(sent?.deliveries?.delivered, 2);
});

test('returns every hour or day of the period, including empty ones', async () => {
  const hours = await usage('?from=2026-01-01T05:59:59.999Z&to=2026-01-01T08:00:00.001Z');
  assert.deepEqual(
    hours.buckets.map(({ start }) => start.slice(11, 16)),
    ['05:00', '06:00', '07:00', '08:00'],
  );
  assert.deepEqual([hours.from, hours.to], ['2026-01-01T05:00:00.000Z', '2026-01-01T09:00:00.000Z']);
  assert.deepEqual(hours.buckets[0]?.jobs, { finished: 0, failed: 0, canceled: 0 });
  assert.deepEqual(hours.buckets[0]?.deliveries?.latencyMs, { p50: null, p95: null });
  assert.equal((await usage('')).buckets.length, 24);
  const ahead = await usage('?by=day&to=9999-12-31T23:59:59Z');
  assert.equal(ahead.buckets.length, 30, 'omits buckets in the future');
});

test('refuses invalid periods, and handles resources of another team like unknown ones', async () => {
  for (const [query, sentence] of [
    ['?from=2026-02-01T00:00Z&to=2026-01-01T00:00Z', /`from` must be before `to`/],
    ['?from=9999-01-01T00:00Z', /in the past/],
    ['?from=2026-01-01T00:00Z&to=2026-03-01T00:00Z', /at most 744 hours/],
    ['?by=week', /must be one of hour, day/],
    ['?workflowId=people&webhookId=wh_1', /not both/],
  ] as const) {
    const { status, body } = await service.call('GET', `/v1/usage${query}`);
    assert.equal(status, 400, query);
    assert.match((body as { error: string }).error, sentence);
  }
  const foreign = await service.call('GET', '/v1/usage?workflowId=private');
  const unknown = await service.call('GET', '/v1/usage?workflowId=unknown');
  assert.deepEqual([foreign.status, foreign.body], [404, unknown.body]);
  assert.equal((await service.call('GET', '/v1/usage?webhookId=wh_1')).status, 404);
});
