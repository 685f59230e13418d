/** The event catalog over HTTP, which the events of the service match. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EVENT_TYPES, type EventType } from '../../src/model/event.ts';
import type { EventKind } from '../../src/model/event-catalog.ts';
import { createSchemaCheck } from '../support/api/json-schema.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;
type ShownKind = EventKind & { aliases: string[] };

/** The second run changes one record and removes another. */
const PEOPLE = `export default async function* (ctx) {
  const again = ctx.state.get('again') ?? false;
  ctx.state.set('again', true);
  yield { id: 1, name: again ? 'Ada' : 'Ida', gone: again ? undefined : 1 };
  if (!again) yield { id: 2 };
}`;

let service: TestService;
/** By how much the clock of the service is ahead. */
let aheadMs = 0;
let receiver: Receiver;

before(async () => {
  receiver = await startReceiver();
  service = await startService({
    clock: () => Date.now() + aheadMs,
    workflows: {
      'default/people.mts': PEOPLE,
      'default/broken.yaml': 'retries: { max: 0 }\nsource: { type: command, command: [sh, -c, "exit 7"] }\n',
      'default/pushed.yaml': 'source: { type: push }\nexpect: { fresh: 1h }\n',
      'default/drifting.yaml': 'source: { type: push }\n',
      'default/warned.yaml': `expect: { records: { min: 2 }, otherwise: warn }\nsource: { type: push }\n`,
      'default/endless.yaml': 'source: { type: command, command: [sleep, "600"] }\n',
    },
  });
});
after(async () => {
  await service.stop();
  await receiver.stop();
});

const get = (path: string) => service.call('GET', path);
const post = (path: string, body?: unknown) => service.call('POST', path, body);
const kinds = async () => ((await get('/v1/events/types')).body as { types: ShownKind[] }).types;
const events = async () => ((await get('/v1/events?limit=250')).body as { events: Json[] }).events;

/** Queues a job and waits for its event of this type. */
async function queue(workflowId: string, until: EventType): Promise<string> {
  const queued = await post(`/v1/workflows/${workflowId}/queue`);
  assert.equal(queued.status, 200, JSON.stringify(queued.body));
  const jobId = queued.headers.get('x-job-id') ?? '';
  await seen(jobId, until);
  return jobId;
}

const seen = (jobId: string, type: EventType) =>
  waitFor(`${type} of ${jobId}`, (event) => event.jobId === jobId && event.type === type);

async function waitFor(what: string, isWanted: (event: Json) => boolean): Promise<void> {
  const deadline = performance.now() + 90_000;
  let next = 0;
  while (performance.now() < deadline) {
    const page = (await get(`/v1/events?after=${next}&wait=5`)).body as { events: Json[]; next: number };
    if (page.events.some(isWanted)) return;
    next = page.next;
  }
  assert.fail(`Waited 90 s for ${what}`);
}

test('the sample is a typical event if the team has none', async () => {
  const sample = await get('/v1/samples/webhook_paused');
  assert.equal(sample.headers.get('x-sample'), 'typical');
  const [event] = sample.body as Json[];
  assert.deepEqual([event?.type, event?.teamId], ['webhook_paused', service.team.id]);
});

test('every event and every example match the catalog', async () => {
  const check = createSchemaCheck();
  const catalog = new Map((await kinds()).map((kind) => [String(kind.type), kind]));
  assert.deepEqual([...catalog.keys()], [...EVENT_TYPES]);
  for (const { schema, example, type } of catalog.values()) {
    assert.equal(check(schema, example), undefined, `the example of ${type}`);
    assert.notEqual(check(schema, { ...example, more: 1 }), undefined, 'the schemas are exact');
  }

  const subscribed = await post('/v1/integrations/webhooks/subscribe', {
    workflowId: 'people',
    webhookUrl: receiver.url,
    events: ['*'],
  });
  const id = subscribed.headers.get('x-webhook-id');
  await post(`/v1/integrations/webhooks/${id}/test`);
  await post(`/v1/integrations/webhooks/${id}/pause`);
  const ofTeam = (await post('/v1/integrations/webhooks', { webhookUrl: receiver.url, events: ['*'] }))
    .body as Json;
  await post(`/v1/integrations/webhooks/${ofTeam.id}/test`);
  await queue('people', 'workflow_finished');
  await queue('people', 'workflow_finished');
  await queue('people', 'workflow_finished');
  await post('/v1/workflows/warned/push', [{ id: 1 }]);
  for (let version = 1; version <= 6; version += 1) {
    const price = version < 6 ? version : 'none';
    const records = Array.from({ length: 20 }, (_, id) => ({ id, price }));
    await post('/v1/workflows/drifting/push?allowDrop=true', records);
  }
  await queue('broken', 'workflow_failed');
  const endless = await queue('endless', 'workflow_started');
  await post(`/v1/jobs/${endless}/cancel`);
  await seen(endless, 'workflow_canceled');
  await post('/v1/workflows/endless/pause');
  // A digest that is removed is sent immediately.
  const gathering = { webhookUrl: receiver.url, events: ['job.failed'], digest: { every: '1h' } };
  const digest = (await post('/v1/integrations/webhooks', gathering)).body as Json;
  await queue('broken', 'workflow_failed');
  await service.call('PATCH', `/v1/integrations/webhooks/${digest.id}`, { digest: null });
  await waitFor('webhook_digest', ({ type }) => type === 'webhook_digest');
  // No program listens on this port. The breaker opens after ten faults.
  const dead = (
    await post('/v1/integrations/webhooks', { webhookUrl: 'http://127.0.0.1:1/', events: ['test'] })
  ).body as Json;
  for (let sent = 0; sent < 12; sent += 1) await post(`/v1/integrations/webhooks/${dead.id}/test`);
  await waitFor('webhook_failing', ({ type }) => type === 'webhook_failing');

  aheadMs = 3_600_000;
  await service.store.freshness.markStale({ teamId: service.team.id, limit: 9 });
  await post('/v1/workflows/pushed/push', [{ id: 1 }]);

  const made = await events();
  for (const event of made) {
    const { schema } = catalog.get(String(event.type)) ?? assert.fail(`No ${event.type} in the catalog`);
    assert.equal(check(schema, event), undefined, JSON.stringify(event));
  }
  assert.deepEqual(new Set(made.map(({ type }) => type)), new Set(EVENT_TYPES), 'every type was created');
});

test('the history of a workflow contains only events of its own jobs', async () => {
  const jobId = await queue('people', 'workflow_finished');
  const history = (workflowId: string) => get(`/v1/events/history?workflowId=${workflowId}&jobId=${jobId}`);
  const { events } = (await history('people')).body as { events: Json[] };
  assert.ok(events.length > 0 && events.every((event) => event.jobId === jobId));
  const other = await history('broken');
  assert.deepEqual([other.status, other.headers.get('x-error-code')], [404, 'job_not_found']);
});

test('a sample is the newest event of its type, also by alias', async () => {
  const last = (await events()).findLast(({ type }) => type === 'workflow_finished');
  for (const name of ['workflow_finished', 'job.completed', 'RUN.SUCCEEDED']) {
    const sample = await get(`/v1/samples/${name}`);
    assert.equal(sample.headers.get('x-sample'), 'real');
    assert.deepEqual(sample.body, [last]);
  }
  for (const name of ['nothing', '*', '%FF']) {
    const { status, body } = await get(`/v1/samples/${name}`);
    assert.deepEqual(
      [status, (body as Json).error],
      [404, 'No such event type. GET /v1/events/types lists them'],
    );
  }
});

test('the catalog lists the aliases of each type', async () => {
  const finished = (await kinds()).find(({ type }) => type === 'workflow_finished');
  assert.ok(finished?.aliases.includes('job.completed'));
  assert.ok(!finished?.aliases.includes('workflow_finished'));
});
