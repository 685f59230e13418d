/** Streams report changes to the team as they happen, and can be resumed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { type Message, openSource, type Source } from '../support/api/event-source.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

const WEBHOOKS = '/v1/integrations/webhooks';
const TALKS =
  'source: { type: command, command: [sh, -c, "echo one >&2; echo two >&2; printf \'{\\"id\\":1}\\\\n\'"] }\n';

let service: TestService;
const sources: Source[] = [];

before(async () => {
  service = await startService({
    workflows: {
      'default/people.yaml': TALKS,
      'default/endless.yaml': 'source: { type: command, command: [sh, -c, "echo one >&2; sleep 600"] }\n',
      'other/private.yaml': TALKS,
    },
  });
});
after(async () => {
  for (const source of sources) source.close();
  await service.stop();
});

const post = (path: string, body?: unknown) => service.call('POST', path, body);
const get = (path: string) => service.call('GET', path);

async function keyOf(slug: string, scopes: Scope[]) {
  const { id: teamId } = await service.store.teams.ensure({ slug });
  return mintKey(service.store, { teamId, name: 'test', scopes, expiresAt: null });
}

async function open(options: { key?: string; lastEventId?: string; path?: string } = {}): Promise<Source> {
  const { path = '/v1/stream', key = service.key, ...rest } = options;
  const source = await openSource(service.url + path, { key, ...rest });
  sources.push(source);
  return source;
}

const hello = (source: Source) => source.until(({ event }) => event === 'hello', 'hello');
const tells = (kind: string, id?: unknown) => (message: Message) => {
  const data = message.data as { kind?: string; ids?: unknown[] | null };
  return (
    message.event === 'invalidate' &&
    data.kind === kind &&
    (id === undefined || data.ids?.includes(id) === true)
  );
};

test('reports changed jobs, workflows and versions by ID, and only to their team', async () => {
  const source = await open();
  const other = await open({ key: (await keyOf('other', ['read'])).key });
  await hello(source);
  await hello(other);
  const jobId = (await post('/v1/workflows/people/queue')).headers.get('x-job-id');
  await source.until(tells('jobs', jobId), 'the job');
  await source.until(tells('versions', 'people'), 'the version');
  await source.until(tells('workflows', 'people'), 'the workflow');
  assert.deepEqual(
    other.messages.map(({ event }) => event),
    ['hello'],
  );
});

test('reports changed webhooks, deliveries and keys', async () => {
  const receiver = await startReceiver();
  try {
    const source = await open();
    await hello(source);
    const body = { workflowId: 'people', webhookUrl: receiver.url, events: ['*'] };
    const id = (await post(`${WEBHOOKS}/subscribe`, body)).headers.get('x-webhook-id');
    await source.until(tells('webhooks', id), 'the webhook');
    const { deliveryId } = (await post(`${WEBHOOKS}/${id}/test`)).body as Json;
    await source.until(tells('deliveries', deliveryId), 'the delivery');
    const { record } = await keyOf('default', ['read']);
    await source.until(tells('keys', record.id), 'the key');
    await post('/v1/workflows/people/pause');
    await source.until(tells('workflows', 'people'), 'the pause');
    await post('/v1/workflows/people/resume');
  } finally {
    await receiver.stop();
  }
});

test('a resumed stream reports what the client has missed', async () => {
  const before = (await hello(await open())).id;
  const jobId = (await post('/v1/workflows/people/queue')).headers.get('x-job-id');
  const source = await open({ lastEventId: before });
  await source.until(tells('jobs', jobId), 'the job');
  // For resources without events, anything may have changed.
  await source.until(({ data }) => (data as Json).kind === 'webhooks' && (data as Json).ids === null, 'any');
  assert.ok(Number((await hello(source)).id) > Number(before));

  const ahead = await open({ lastEventId: '999999999' });
  await ahead.until(({ data }) => (data as Json).kind === 'versions' && (data as Json).ids === null, 'any');
  assert.equal((await open({ lastEventId: 'x' })).status, 400);
});

test('a stream ends when its key is revoked', async () => {
  const { key, record } = await keyOf('default', ['read']);
  const source = await open({ key });
  await hello(source);
  await service.store.keys.revoke({ id: record.id });
  await source.ended;
});

test('the log stream of a running job ends when its key is revoked', async () => {
  const jobId = (await post('/v1/workflows/endless/queue')).headers.get('x-job-id');
  const { key, record } = await keyOf('default', ['read']);
  const source = await open({ path: `/v1/jobs/${jobId}/logs`, key });
  await source.until(({ event }) => event === 'line', 'a line');
  await service.store.keys.revoke({ id: record.id });
  await source.ended;
  assert.ok(source.messages.every(({ event }) => event === 'line'));
  await post(`/v1/jobs/${jobId}/cancel`);
});

test('requires the scope `read`', async () => {
  const { key } = await keyOf('default', ['webhooks']);
  assert.equal((await open({ key })).status, 403);
});

test('a team can open 100 streams, independently of other teams', async () => {
  const { key } = await keyOf('crowded', ['read']);
  const crowd = await Promise.all(Array.from({ length: 101 }, () => open({ key })));
  const statuses = crowd.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [...Array.from({ length: 100 }, () => 200), 503]);
  assert.equal((await open()).status, 200);
  for (const source of crowd) source.close();
});

test('follows the log of a job to its end, and resumes after a disconnect', async () => {
  const jobId = (await post('/v1/workflows/people/queue')).headers.get('x-job-id');
  const path = `/v1/jobs/${jobId}/logs`;
  const source = await open({ path });
  const end = await source.until(({ event }) => event === 'end', 'the end');
  assert.equal((end.data as Json).state, 'finished');
  await source.ended;
  const { lines } = (await get(path)).body as { lines: Json[] };
  assert.deepEqual(
    source.messages.slice(0, -1).map(({ data }) => data),
    lines.map((line) => ({ attempt: 1, ...line })),
  );
  assert.ok(lines.some(({ text }) => text === 'two'));

  const resumed = await open({ path, lastEventId: source.messages[0]?.id ?? '' });
  await resumed.ended;
  assert.deepEqual(resumed.messages, source.messages.slice(1));
  assert.equal((await open({ path, lastEventId: '5' })).status, 400);
  assert.equal((await open({ path: '/v1/jobs/job_0/logs' })).status, 404);
});

test('HEAD returns the headers of GET, and ends', async () => {
  const { jobs } = (await get('/v1/jobs?limit=1')).body as { jobs: Json[] };
  for (const path of ['/v1/stream', `/v1/jobs/${jobs[0]?.id}/logs`]) {
    const response = await fetch(service.url + path, {
      method: 'HEAD',
      headers: { 'x-api-key': service.key },
    });
    assert.equal(response.status, 200);
  }
});

test('stopping ends every stream', async () => {
  const another = await startService();
  const source = await openSource(`${another.url}/v1/stream`, { key: another.key });
  await hello(source);
  await another.stop();
  await source.ended;
});
