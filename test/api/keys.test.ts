/** Keys over HTTP: reading the caller, creating, rotating and revoking keys, and scopes that callers cannot grant. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request as openRequest } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { runCommand } from '../support/cli/commands.ts';
import { type Answer, startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

type Json = Record<string, unknown>;

let service: TestService;
let ahead = 0;
let admin: { key: string; id: string };
let foreign: { key: string; id: string };

before(async () => {
  service = await startService({ clock: () => Date.now() + ahead });
  admin = await keyOf('default', ['admin']);
  foreign = await keyOf('other', ['admin']);
});
after(() => service.stop());

async function keyOf(slug: string, scopes: Scope[]): Promise<{ key: string; id: string }> {
  const { id: teamId } = await service.store.teams.ensure({ slug });
  const made = await mintKey(service.store, { teamId, name: 'test', scopes, expiresAt: null });
  return { key: made.key, id: made.record.id };
}

const as = (key: string, method: string, path: string, body?: unknown) =>
  service.call(method, path, body, { 'x-api-key': key });
const make = (body: unknown, key = admin.key) => as(key, 'POST', '/v1/keys', body);
const works = async (key: unknown) => (await as(String(key), 'GET', '/v1/me')).status === 200;
const keyIn = ({ body }: Answer) => (body as Json).key as Json;
const refused = ({ status, body }: Answer, expected: number, sentence: RegExp) => {
  assert.match(String((body as Json).error), sentence);
  assert.equal(status, expected);
};

test('a key of any scope can read the caller; without a key this fails', async () => {
  const { key, id } = await keyOf('default', ['webhooks']);
  const me = (await as(key, 'GET', '/v1/me')).body as Json;
  const { id: teamId } = await service.store.teams.ensure({ slug: 'default' });
  const { maxRunningJobs } = (me as { limits: { maxRunningJobs: number } }).limits;
  assert.ok(maxRunningJobs >= 2, 'the number of processors');
  assert.deepEqual(me, {
    team: { id: teamId, slug: 'default' },
    key: { id, name: 'test', prefix: key.slice(0, 7), scopes: ['webhooks'], expiresAt: null },
    limits: {
      defaultPageSize: 100,
      maxPageSize: 1_000,
      maxBodyBytes: 65_536,
      maxWebhooksPerWorkflow: 1_000,
      maxWorkflows: null,
      maxWebhooks: null,
      maxKeys: 1_000,
      maxRecords: null,
      maxStoredBytes: null,
      maxRunningJobs,
    },
  });
  refused(await as('nobody', 'GET', '/v1/me'), 401, /Unauthorized/);
});

test('creates a key with a name, scopes and an expiry, which is shown once and works immediately', async () => {
  const expiresAt = new Date(Date.now() + 60_000).toISOString();
  const made = await make({ name: 'Zapier', scopes: ['webhooks', 'read'], expiresAt });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.equal(made.headers.get('cache-control'), 'private, no-store');
  const { apiKey } = made.body as { apiKey: string };
  const { id, createdAt, ...shown } = keyIn(made);
  assert.match(String(createdAt), /Z$/);
  assert.deepEqual(shown, {
    name: 'Zapier',
    prefix: apiKey.slice(0, 7),
    scopes: ['read', 'webhooks'],
    expiresAt,
    revokedAt: null,
    lastUsedAt: null,
    concern: null,
  });
  assert.ok(await works(apiKey));
  const listed = await as(admin.key, 'GET', '/v1/keys');
  assert.ok((listed.body as { keys: Json[] }).keys.some((key) => key.id === id));
  assert.ok(!JSON.stringify(listed.body).includes(apiKey));
  assert.deepEqual(keyIn(await make(undefined)).scopes, ['read', 'queue', 'webhooks']);
});

test('an idempotency key creates one key, which is shown once', async () => {
  const count = async () => ((await as(admin.key, 'GET', '/v1/keys')).body as { keys: Json[] }).keys.length;
  const once = (body: unknown, key = 'once') =>
    service.call('POST', '/v1/keys', body, { 'x-api-key': admin.key, 'idempotency-key': key });
  const before = await count();
  const answers = await Promise.all([1, 2, 3].map(() => once({ name: 'once' })));
  const made = answers.filter(({ status }) => status === 200);
  assert.equal(made.length, 1);
  const { id } = keyIn(made[0] as Answer);
  for (const answer of answers.filter((one) => one !== made[0])) {
    refused(answer, 409, new RegExp(`The key ${id} was already created.*POST /v1/keys/${id}/rotate`));
    assert.equal(answer.headers.get('x-error-code'), 'key_made_before');
  }
  refused(await once({ name: 'another' }), 422, /already used for a different request/);
  refused(await once({ name: 'once' }, ''), 400, /`idempotency-key` must have 1 to 255 characters/);
  assert.equal(await count(), before + 1);
});

test('refuses a key after its expiry', async () => {
  const made = await make({ expiresAt: new Date(service.store.now() + 3_600_000).toISOString() });
  const { apiKey } = made.body as Json;
  assert.ok(await works(apiKey));
  ahead += 3_600_000;
  assert.ok(!(await works(apiKey)));
  refused(await as(admin.key, 'POST', `/v1/keys/${keyIn(made).id}/rotate`), 404, /No key found/);
});

test('refuses invalid fields, each with a sentence', async () => {
  for (const [body, sentence] of [
    [{ name: 5 }, /`name` must be a string of at most 200/],
    [{ name: 'x'.repeat(201) }, /`name`/],
    [{ name: 'a\u0000b' }, /control characters/],
    [{ scopes: [] }, /`scopes` must be an array of some of read, queue, webhooks, admin/],
    [{ scopes: 'read' }, /`scopes` must be an array/],
    [{ scopes: ['raed'] }, /Did you mean `read`\?/],
    [{ scopes: [['read']] }, /`scopes` must be one of/],
    [{ expiresAt: '2001-01-01T00:00:00Z' }, /must be in the future/],
    [{ expiresAt: 5 }, /`expiresAt` must be an ISO 8601 time/],
    [{ scopes: ['read', 'read'] }, /each at most once/],
    [{ scope: ['read'] }, /There is no field "scope"\. Did you mean `scopes`\?/],
    [[], /must be a JSON object/],
  ] as const) {
    refused(await make(body), 400, sentence);
  }
});

test('only keys with the scope `admin` manage keys, and no key can create an operator', async () => {
  for (const scopes of [['read'], ['queue', 'webhooks']] as Scope[][]) {
    const { key } = await keyOf('default', scopes);
    for (const [method, path] of [
      ['GET', '/v1/keys'],
      ['POST', '/v1/keys'],
      ['POST', `/v1/keys/${admin.id}/rotate`],
      ['DELETE', `/v1/keys/${admin.id}`],
    ] as const) {
      refused(await as(key, method, path), 403, /does not have the scope `admin`/);
    }
  }
  const operator = await keyOf('default', ['operator']);
  for (const key of [admin.key, operator.key]) {
    refused(await make({ scopes: ['operator'] }, key), 400, /`flowhook keys`/);
    refused(await as(key, 'POST', `/v1/keys/${operator.id}/rotate`), 400, /`operator`/);
    refused(await as(key, 'DELETE', `/v1/keys/${operator.id}?self=true`), 400, /`operator`/);
  }
  assert.ok(await works(operator.key));
});

test('rotating ends the old key immediately, or after the overlap', async () => {
  const first = await make({ name: 'worker', scopes: ['queue'] });
  const second = await as(admin.key, 'POST', `/v1/keys/${keyIn(first).id}/rotate`);
  assert.equal(second.headers.get('cache-control'), 'private, no-store');
  const { name, scopes } = keyIn(second);
  assert.deepEqual([name, scopes], ['worker', ['queue']]);
  const secret = ({ body }: Answer) => (body as Json).apiKey;
  assert.deepEqual([await works(secret(first)), await works(secret(second))], [false, true]);

  const path = `/v1/keys/${keyIn(second).id}/rotate`;
  const third = await as(admin.key, 'POST', path, { overlapSeconds: 60 });
  assert.deepEqual([await works(secret(second)), await works(secret(third))], [true, true]);
  ahead += 60_000;
  assert.deepEqual([await works(secret(second)), await works(secret(third))], [false, true]);
  for (const overlapSeconds of [-1, 0.5, '5', null, 2_592_001]) {
    refused(
      await as(admin.key, 'POST', `/v1/keys/${keyIn(third).id}/rotate`, { overlapSeconds }),
      400,
      /`overlapSeconds` must be a whole number from 0 to/,
    );
  }
});

test('a revoked key stops immediately; revoking twice is harmless; a key revokes itself only with `self`', async () => {
  const made = await make({ scopes: ['admin'] });
  const { apiKey } = made.body as { apiKey: string };
  const path = `/v1/keys/${keyIn(made).id}`;
  refused(await as(apiKey, 'DELETE', path), 400, /add \?self=true/);
  refused(await as(apiKey, 'DELETE', `${path}?self=yes`), 400, /must be one of true, false/);
  assert.ok(await works(apiKey));
  const revoked = await as(apiKey, 'DELETE', `${path}?self=true`);
  assert.equal(revoked.status, 200);
  assert.notEqual(keyIn(revoked).revokedAt, null);
  assert.ok(!(await works(apiKey)));
  assert.deepEqual((await as(admin.key, 'DELETE', path)).body, revoked.body);
});

test('keys of another team are handled like unknown ones', async () => {
  for (const [method, path] of [
    ['DELETE', (id: string) => `/v1/keys/${id}`],
    ['POST', (id: string) => `/v1/keys/${id}/rotate`],
  ] as const) {
    const unknown = await as(admin.key, method, path('key_0000000000'));
    const others = await as(admin.key, method, path(foreign.id));
    assert.deepEqual([others.status, others.body], [unknown.status, unknown.body]);
    refused(others, 404, /No key found/);
  }
  assert.ok(await works(foreign.key));
  const { keys } = (await as(foreign.key, 'GET', '/v1/keys')).body as { keys: Json[] };
  assert.deepEqual(
    keys.map(({ id }) => id),
    [foreign.id],
  );
});

test('lists keys page by page', async () => {
  const whole = ((await as(admin.key, 'GET', '/v1/keys')).body as { keys: Json[] }).keys;
  const pages: Json[] = [];
  let next: string | undefined = '/v1/keys?limit=2';
  while (next !== undefined) {
    const page = await as(admin.key, 'GET', next);
    const { keys } = page.body as { keys: Json[] };
    assert.ok(keys.length <= 2);
    pages.push(...keys);
    next = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
  }
  assert.deepEqual(pages, whole);
  refused(await as(admin.key, 'GET', '/v1/keys?cursor=x'), 400, /`cursor`/);
});

/** How a key ends while a call with it is in progress. */
const ENDS: readonly [how: string, scopes: Scope[], end: (id: string) => Promise<unknown>][] = [
  ['is revoked over the API', ['read', 'queue'], (id) => as(admin.key, 'DELETE', `/v1/keys/${id}`)],
  ['is revoked by another process', ['read', 'queue'], revokeElsewhere],
  ['expires', ['read', 'queue'], async () => (ahead += 3_600_000)],
];

async function revokeElsewhere(id: string): Promise<void> {
  const environment = { FLOWHOOK_DATA: join(service.directory, 'data'), ...service.database.settings };
  const ended = await runCommand(['keys', 'revoke', id, '--yes'], {
    directory: service.directory,
    environment,
  });
  assert.equal(ended.code, 0, ended.stderr);
}

const push = (records: Json[]) => as(admin.key, 'POST', '/v1/workflows/pushed/push', records);

for (const [how, scopes, end] of ENDS) {
  const endingKey = async () => {
    const expiresAt = new Date(service.store.now() + 1_800_000).toISOString();
    const made = await make({ scopes, expiresAt });
    return { key: String((made.body as Json).apiKey), id: String(keyIn(made).id) };
  };

  test(`a long poll ends with 401, and without later events, when its key ${how}`, async () => {
    await as(admin.key, 'PUT', '/v1/workflows/pushed', { source: { type: 'push' } });
    const { key, id } = await endingKey();
    const poll = as(key, 'GET', '/v1/events?after=now&wait=25');
    // Once later calls with its key return, the long poll is waiting.
    for (let call = 0; call < 5; call += 1) assert.ok(await works(key));
    await end(id);
    assert.equal((await push([{ id: how }])).status, 200);
    refused(await poll, 401, /was revoked or expired during the call/);
  });

  test(`a push whose key ${how} while the records arrive returns 401 and publishes nothing`, async () => {
    await as(admin.key, 'PUT', '/v1/workflows/pushed', { source: { type: 'push' } });
    const { key, id } = await endingKey();
    const request = openRequest(`${service.url}/v1/workflows/pushed/push`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/x-ndjson' },
    });
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    request.write('{"id":"late"}\n');
    let jobId = '';
    await until('the push to start', async () => {
      const { body } = await as(admin.key, 'GET', '/v1/jobs?workflowId=pushed&state=running');
      jobId = String((body as { jobs: Json[] }).jobs[0]?.id ?? '');
      return jobId !== '';
    });
    await end(id);
    const [response] = await answered;
    assert.equal(response.statusCode, 401);
    request.destroy();
    const job = (await as(admin.key, 'GET', `/v1/jobs/${jobId}`)).body as Json;
    assert.equal(job.state, 'failed');
    assert.match(String(job.error), /was revoked or expired/);
    const data = (await as(admin.key, 'GET', '/v1/workflows/pushed/data')).body as Json[];
    assert.ok(data.every((record) => record.id !== 'late'));
  });
}

test('signing keys without a team are those of `default`, and do not reveal whether other teams exist', async () => {
  const read = async (path = '') => {
    const answer = await fetch(`${service.url}/.well-known/webhook-signing-keys${path}`);
    return { status: answer.status, body: await answer.text() };
  };
  const before = await read();
  assert.deepEqual(before, await read(`/${service.team.id}`));
  assert.equal((JSON.parse(before.body) as { keys: Json[] }).keys.length, 1);
  await service.store.teams.ensure({ slug: 'yet-another' });
  assert.deepEqual(await read(), before);
});

test('a key that expires cannot create or rotate keys that live longer', async () => {
  const until = Date.now() + ahead + 3_600_000;
  const expiresAt = new Date(until).toISOString();
  const { key } = (await make({ scopes: ['admin'], expiresAt })).body as { key: { id: string } };
  const short = String(((await make({ scopes: ['admin'], expiresAt })).body as Json).apiKey);
  const same = await make({}, short);
  assert.deepEqual([same.status, keyIn(same).expiresAt], [200, expiresAt]);
  const sooner = new Date(until - 1).toISOString();
  assert.equal(keyIn(await make({ expiresAt: sooner }, short)).expiresAt, sooner);
  for (const later of [null, new Date(until + 1).toISOString()]) {
    refused(await make({ expiresAt: later }, short), 400, /expires later than itself/);
  }
  const lasting = keyIn(await make({}));
  refused(await as(short, 'POST', `/v1/keys/${lasting.id}/rotate`), 400, /expires later than itself/);
  assert.equal((await as(short, 'POST', `/v1/keys/${key.id}/rotate`)).status, 200);
  assert.equal(keyIn(await make({ expiresAt: null })).expiresAt, null, 'a key without expiry may');
});

test('a team can have as many keys as its quota, and lists them in pages', async () => {
  const few = await keyOf('few', ['admin']);
  const { id: teamId } = await service.store.teams.ensure({ slug: 'few' });
  await service.store.teams.setQuotas({ teamId, quotas: { keys: 3 } });
  const second = keyIn(await make({}, few.key));
  await make({}, few.key);
  refused(await make({}, few.key), 400, /quota of 3 keys\. Revoke one first/);
  assert.equal((await as(few.key, 'POST', `/v1/keys/${second.id}/rotate`)).status, 200);
  const ids: unknown[] = [];
  for (let path: string | undefined = '/v1/keys?limit=2'; path !== undefined; ) {
    const page: Answer = await as(few.key, 'GET', path);
    const { keys } = page.body as { keys: Json[] };
    assert.ok(keys.length <= 2);
    ids.push(...keys.map(({ id }) => id));
    path = /<([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1];
  }
  assert.deepEqual([new Set(ids).size, ids[0]], [4, few.id]);
});
