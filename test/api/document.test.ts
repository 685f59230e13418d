/**
 * The service and its document agree: responses to random requests, generated from `/openapi.json` as valid, damaged and
 * hostile, match the document, are never 5xx, and do not distinguish resources of other teams from unknown ones.
 * `DOCUMENT_REQUESTS=100000` is the long form; `FUZZ_SEED` repeats a failure.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { mintKey } from '../../src/teams/keys.ts';
import { type ApiDocument, createRequests, type Request } from '../support/api/document-requests.ts';
import { createSchemaCheck } from '../support/api/json-schema.ts';
import { seeded } from '../support/seeded.ts';
import { startService } from '../support/service.ts';

type Json = Record<string, unknown>;

const REQUESTS = Number(process.env.DOCUMENT_REQUESTS ?? 1_500);
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
const AT_ONCE = 4;
/** New resources of both teams are created regularly, because requests consume them. */
const REFRESH_EVERY = 250;

const service = await startService({
  workflows: {
    'default/people.yaml': 'source: { type: push }\n',
    'default/held.yaml': "source: { type: command, command: [sleep, '600'] }\n",
    'default/broken.yaml':
      'retries: { max: 10, backoff: 10m }\nsource: { type: command, command: [/bin/false] }\n',
    'default/quick.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
    'other/private.yaml': 'source: { type: push }\n',
  },
});
after(() => service.stop());
const other = await service.store.teams.ensure({ slug: 'other' });
const otherKey = (
  await mintKey(service.store, { teamId: other.id, name: 'x', scopes: ['admin'], expiresAt: null })
).key;
const document = (await service.call('GET', '/openapi.json')).body as ApiDocument;
const check = createSchemaCheck(document);

/** IDs by parameter name: of the caller's team, and of the other team. */
type Ids = Record<string, string>;

async function makeIds(key: string, workflowId: string): Promise<Ids> {
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await service.call(method, path, body, { 'x-api-key': key });
    assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer;
  };
  const webhookUrl = 'http://127.0.0.1:9/';
  const wide = (await call('POST', '/v1/integrations/webhooks', { webhookUrl, events: ['*'] })).body as Json;
  const tested = (await call('POST', `/v1/integrations/webhooks/${wide.id}/test`)).body as Json;
  const expect = { fields: { price: { type: 'number' } }, otherwise: 'quarantine' };
  await call('PUT', `/v1/workflows/made-${workflowId}`, { source: { type: 'push' }, expect });
  await call('POST', `/v1/workflows/made-${workflowId}/resume`);
  // The second record is set aside.
  const pushed = await call('POST', `/v1/workflows/made-${workflowId}/push`, [
    { id: 1, price: 1 },
    { id: 2, price: 'x' },
  ]);
  const since = new Date(0).toISOString();
  const replay = (await call('POST', `/v1/integrations/webhooks/${wide.id}/replay`, { since })).body as Json;
  const retry = (await call('POST', '/v1/deliveries/retry', { states: ['waiting', 'delivered', 'dead'] }))
    .body as { retry?: Json };
  const made = (await call('POST', '/v1/keys')).body as { key: Json };
  for (const { id } of ((await call('GET', '/v1/inspectors')).body as { inspectors: Json[] }).inspectors) {
    await service.call('DELETE', `/v1/inspectors/${id}`, undefined, { 'x-api-key': key });
  }
  const inspector = (await call('POST', '/v1/inspectors')).body as Json;
  const feeds = `/v1/workflows/made-${workflowId}/feeds`;
  for (const { id } of ((await call('GET', feeds)).body as { feeds: Json[] }).feeds) {
    await service.call('DELETE', `${feeds}/${id}`, undefined, { 'x-api-key': key });
  }
  const feed = (await call('POST', feeds)).body as Json & { urls: { json: string } };
  return {
    workflowId: `made-${workflowId}`,
    webhookId: String(wide.id),
    deliveryId: String(tested.deliveryId),
    eventId: String(tested.eventId),
    jobId: pushed.headers.get('x-job-id') ?? '',
    recordId: '1',
    keyId: String(made.key.id),
    inspectorId: String(inspector.id),
    feedId: String(feed.id),
    feedAddress: new URL(feed.urls.json).pathname.replace('/feeds/', ''),
    replayId: String((replay.replay as Json | undefined)?.id ?? replay.replayId ?? 'rpl_0'),
    retryId: String(retry.retry?.id ?? 'rty_0'),
    teamId: key === otherKey ? other.id : service.team.id,
    eventType: 'workflow_finished',
  };
}

const UNKNOWN: Ids = {
  workflowId: 'unknown',
  webhookId: 'wh_01kadz8v3s7v0s8e1c3q5m2n4p',
  deliveryId: 'dlv_01kadz8v3s7v0s8e1c3q5m2n4p',
  eventId: 'evt_01kadz8v3s7v0s8e1c3q5m2n4p',
  jobId: 'job_01kadz8v3s7v0s8e1c3q5m2n4p',
  recordId: 'unknown',
  keyId: 'key_01kadz8v3s7v0s8e1c3q5m2n4p',
  inspectorId: 'insp_0',
  feedId: 'feed_01kadz8v3s7v0s8e1c3q5m2n4p',
  feedAddress: `${'0'.repeat(66)}.atom`,
  replayId: 'rpl_01kadz8v3s7v0s8e1c3q5m2n4p',
  retryId: 'rty_01kadz8v3s7v0s8e1c3q5m2n4p',
  teamId: 'team_01kadz8v3s7v0s8e1c3q5m2n4p',
  eventType: 'workflow_finished',
};
/**
 * Operations that random requests may never call successfully: `makeIds` calls three of them, one needs the team
 * `default`, and the others need a job or a body in a certain state.
 */
const HARD_TO_MEET = [
  'putWorkflow',
  'pushWorkflowRecords',
  'replayWebhookDeliveries',
  'readDefaultSigningKeys',
  'runJobNow',
  'cancelJob',
  'rerunJob',
  // It needs either the ids of records that are set aside, or `all`: test/records/quarantine.test.ts.
  'acceptQuarantine',
  // These need a signed link, or a webhook that sends mail: test/api/mail.test.ts.
  'verifyWebhook',
  'readVerification',
  'confirmAddress',
  'readUnsubscription',
  'endMails',
  // An inspector may return any status: here there is none.
  ...['Get', 'Post', 'Put', 'Patch', 'Delete', 'Options'].map((method) => `inspect${method}`),
];
const HOSTILE_IDS = [
  '%ZZ',
  '%FF',
  '%00',
  '..%2f',
  'wh_%00',
  '%F0%9F%92%A5',
  'x'.repeat(5_000),
  '__proto__',
  '%20',
];

interface Got {
  status: number;
  type: string;
  code: string | null;
  text: string;
}

async function send(request: Request, ids: Ids): Promise<Got> {
  const path = request.path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'x');
  const abort = new AbortController();
  const response = await fetch(service.url + path + request.query, {
    method: request.method,
    headers: { 'x-api-key': service.key, ...request.headers },
    ...(request.body === undefined || request.method === 'GET' ? {} : { body: request.body }),
    signal: abort.signal,
  });
  const type = (response.headers.get('content-type') ?? '').split(';')[0] ?? '';
  const isEndless = type === 'text/event-stream';
  const text = isEndless ? '' : await response.text();
  if (isEndless) abort.abort();
  return { status: response.status, type, code: response.headers.get('x-error-code'), text };
}

/** How a response violates the document; undefined if it does not. */
function mistake({ operation }: Request, got: Got): string | undefined {
  if (got.status >= 500) return 'a 5xx';
  const described = operation.responses[String(got.status)];
  if (described === undefined) {
    // An empty ID, or one that the path does not match, results in another path.
    if (got.code === 'route_not_found' || got.code === 'method_not_allowed') return undefined;
    return `the status is not described: there are ${Object.keys(operation.responses).join(', ')}`;
  }
  if (got.status === 304 || got.status === 204) return undefined;
  const content = described.content?.[got.type];
  if (content === undefined) return `the content type ${got.type} is not described for it`;
  if (got.type !== 'application/json') return undefined;
  return check(content.schema, JSON.parse(got.text));
}

/** The latest job of each workflow. */
async function latestJobs(): Promise<string[]> {
  const ids: string[] = [];
  for (const workflowId of ['quick', 'held', 'broken']) {
    await service.call('POST', `/v1/workflows/${workflowId}/resume`);
    const { headers } = await service.call('POST', `/v1/workflows/${workflowId}/queue`);
    ids.push(headers.get('x-job-id') ?? '');
  }
  return ids;
}

test(`${REQUESTS} requests generated from the document (FUZZ_SEED=${SEED})`, {
  timeout: 3_600_000,
}, async () => {
  const random = seeded(SEED);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  let jobs: string[] = [];
  const known: Record<string, () => unknown> = {
    workflowId: () => pick(['people', 'quick', 'made-mine']),
    webhookId: () => mine.webhookId,
    eventId: () => mine.eventId,
    source: () => pick([{ type: 'push' }, undefined]),
    events: () => pick([['job.finished'], ['*', 'workflow_failed'], undefined]),
    email: () => pick(['1@2', 'ada@example.com', undefined]),
    cursor: () => undefined,
    since: () => pick(['0', '1', undefined]),
    cooldown: () => undefined,
    digest: () => pick([{ every: '1h' }, undefined]),
    timeZone: () => undefined,
    format: () => pick(['json', undefined]),
  };
  const next = createRequests(document, random, (name) => known[name]?.());
  const statuses = new Map<string, number>();
  let mine: Ids = {};
  let theirs: Ids = {};
  const some = (): Ids => ({
    ...mine,
    ...(random() < 0.5 ? { workflowId: pick(['people', 'quick', 'broken']) } : {}),
    ...(random() < 0.6 ? { jobId: pick(jobs) } : {}),
    recordId: pick(['1', '2']),
  });
  const one = async () => {
    const request = next();
    const dice = random();
    const name = /\{(\w+)\}(?!.*\{)/.exec(request.path)?.[1] ?? '';
    const hostile = HOSTILE_IDS[Math.floor(random() * HOSTILE_IDS.length)] ?? '';
    // A PUT would create the resource in the caller's team.
    const ids =
      dice < 0.6 || request.method === 'PUT' ? some() : dice < 0.7 ? { ...mine, [name]: hostile } : theirs;
    const sent = () => JSON.stringify({ ...request, operation: request.operation.operationId, ids });
    const got = await send(request, ids);
    const found = mistake(request, got);
    assert.equal(found, undefined, `${sent()}\n${got.status} ${got.type} ${got.text.slice(0, 6_000)}`);
    const key = `${request.operation.operationId} ${got.status}`;
    statuses.set(key, (statuses.get(key) ?? 0) + 1);
    // Signing keys and event types are public, and the address of a feed is known only to its readers.
    if (ids !== theirs || ['', 'teamId', 'eventType', 'feedAddress'].includes(name)) return;
    const unknown = await send(request, UNKNOWN);
    assert.deepEqual([got.status, got.code, got.text], [unknown.status, unknown.code, unknown.text], sent());
  };
  for (let made = 0; made < REQUESTS; made += REFRESH_EVERY) {
    jobs = await latestJobs();
    mine = await makeIds(service.key, 'mine');
    theirs = await makeIds(otherKey, 'theirs');
    const count = Math.min(REFRESH_EVERY, REQUESTS - made);
    for (let sent = 0; sent < count; sent += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, one));
    }
  }
  // A few random requests do not reach every operation.
  if (REQUESTS < 20_000) return;
  const wellDone = new Set(
    [...statuses.keys()].filter((key) => key.endsWith(' 200')).map((key) => key.split(' ')[0]),
  );
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const never = operations.map(({ operationId }) => operationId).filter((id) => !wellDone.has(id));
  for (const id of HARD_TO_MEET) if (never.includes(id)) never.splice(never.indexOf(id), 1);
  assert.deepEqual(never, [], 'operations that never returned 200');
});
