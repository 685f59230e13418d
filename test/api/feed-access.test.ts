/** Who can read and manage feeds: addresses, caching, limits, erasures, scopes, and what the log contains. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Conflict, Flowhook, Forbidden, NotFound } from '../../client/src/flowhook-client.ts';
import { FEED_RATE } from '../../src/http/feeds/feed-bodies.ts';
import { MAX_FEEDS } from '../../src/model/messages/feed.ts';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { makePlace } from '../support/cli/place.ts';
import { startTraceReceiver } from '../support/observe/trace-receiver.ts';
import { startServerProcess } from '../support/server-process.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
let flowhook: Flowhook;
let made = 0;

before(async () => {
  service = await startService();
  flowhook = new Flowhook({ url: service.url, key: service.key, retries: 0 });
});
after(() => service.stop());

async function workflowWith(...records: object[]): Promise<string> {
  const id = `w${++made}`;
  await flowhook.workflows.put(id, { source: { type: 'push' } });
  if (records.length > 0) await flowhook.workflows.push(id, records);
  return id;
}

async function feedOf(workflowId: string, settings = {}) {
  const { id, urls } = await flowhook.feeds.create(workflowId, settings);
  assert.ok(urls !== null);
  return { id, ...urls };
}

async function statusAt(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers });
  await response.text();
  return response.status;
}

/** The operations of the store that are called until `end`. */
function operationsCalled(): { end(): string[] } {
  const called: string[] = [];
  const before: (() => void)[] = [];
  for (const noun of ['feeds', 'events', 'records', 'workflows', 'teams', 'keys'] as const) {
    const group = service.store[noun] as unknown as Record<string, (input: unknown) => unknown>;
    for (const [name, operation] of Object.entries(group)) {
      before.push(() => {
        group[name] = operation;
      });
      group[name] = (input) => {
        called.push(`${noun}.${name}`);
        return operation(input);
      };
    }
  }
  return {
    end() {
      for (const restore of before) restore();
      return called;
    },
  };
}

test('a reader that has the content gets 304 after one lookup, and a kept body needs no more', async () => {
  const workflowId = await workflowWith({ id: '1', name: 'Ada' });
  const { atom, json } = await feedOf(workflowId);
  const calls = operationsCalled();
  const first = await fetch(atom);
  const text = await first.text();
  const tag = first.headers.get('etag') ?? '';
  assert.match(tag, /^W\/"/);
  assert.equal(await statusAt(atom), 200);
  for (const known of [tag, tag.slice(2), `"other", ${tag}`, '*']) {
    const again = await fetch(atom, { headers: { 'if-none-match': known } });
    assert.deepEqual([again.status, await again.text(), again.headers.get('etag')], [304, '', tag]);
  }
  const head = await fetch(atom, { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers.get('etag')], [200, tag]);
  const called = calls.end();
  assert.deepEqual(called.slice(0, 3), ['feeds.open', 'events.history', 'workflows.get']);
  assert.deepEqual(new Set(called.slice(3)), new Set(['feeds.open']));
  assert.equal(await statusAt(json, { 'if-none-match': tag }), 200, 'each format has its own tag');

  await flowhook.workflows.push(workflowId, [{ id: '1', name: 'Ada L.' }]);
  const changed = await fetch(atom, { headers: { 'if-none-match': tag } });
  assert.equal(changed.status, 200);
  assert.notEqual(await changed.text(), text);
  const { id } = await feedOf(workflowId);
  const { urls } = await flowhook.feeds.get(workflowId, id);
  const old = (await fetch(urls?.atom ?? '')).headers.get('etag') ?? '';
  await flowhook.feeds.update(workflowId, id, { limit: 1 });
  assert.equal(await statusAt(urls?.atom ?? '', { 'if-none-match': old }), 200, 'new settings');
});

test('Last-Modified is the time of the newest version, once its second is over', async () => {
  const workflowId = await workflowWith({ id: '1', name: 'Ada' });
  const { atom } = await feedOf(workflowId);
  const [version] = await flowhook.workflows.versions(workflowId).take(1);
  const second = (time: string) => Math.floor(Date.parse(time) / 1_000);
  const modified = await until('the header is sent', async () => {
    const { headers } = await fetch(atom);
    return headers.get('last-modified') ?? undefined;
  });
  assert.ok(second(modified) >= second(version?.publishedAt ?? ''));
  const earlier = new Date(Date.parse(modified) - 1_000).toUTCString();
  assert.equal(await statusAt(atom, { 'if-modified-since': modified }), 304);
  assert.equal(await statusAt(atom, { 'if-modified-since': earlier }), 200);
  assert.equal(await statusAt(atom, { 'if-modified-since': 'yesterday' }), 200);
  assert.equal(await statusAt(atom, { 'if-modified-since': modified, 'if-none-match': '"x"' }), 200);
});

test('addresses stay private: no cache, referrer or index may keep them, also not with an error', async () => {
  const { atom, html } = await feedOf(await workflowWith());
  const unknown = atom.replace(/[0-9a-f]{40}/, '0'.repeat(40));
  for (const url of [atom, html, unknown, `${service.url}/feeds/x`]) {
    const { headers } = await fetch(url);
    assert.equal(headers.get('cache-control'), 'private, no-cache', url);
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
    assert.match(headers.get('x-robots-tag') ?? '', /noindex/);
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
  }
  for (const url of [
    unknown,
    `${service.url}/feeds/x`,
    `${atom}x`,
    `${html}.rss`,
    `${service.url}/feeds/%ff`,
  ]) {
    assert.equal(await statusAt(url), 404, url);
  }
});

test('a revoked feed and a rotated address return 410', async () => {
  const workflowId = await workflowWith({ id: '1' });
  const { id, atom, json, html } = await feedOf(workflowId);
  const rotated = await flowhook.feeds.rotate(workflowId, id);
  for (const url of [atom, json, html]) assert.equal(await statusAt(url), 410);
  const next = rotated.urls?.atom ?? '';
  assert.equal(await statusAt(next), 200);
  await flowhook.feeds.revoke(workflowId, id);
  const gone = await fetch(next);
  assert.deepEqual([gone.status, gone.headers.get('x-error-code')], [410, 'feed_ended']);
  assert.match(
    ((await gone.json()) as { error: string }).error,
    /^This feed was revoked, or has a new address/,
  );
  await assert.rejects(flowhook.feeds.rotate(workflowId, id), NotFound);
});

test('the feeds of an archived workflow and of a deleted team cannot be read', async () => {
  const workflowId = await workflowWith({ id: '1' });
  const { atom } = await feedOf(workflowId);
  assert.equal(await statusAt(atom), 200);
  await flowhook.workflows.delete(workflowId);
  assert.equal(await statusAt(atom), 404);
  await flowhook.workflows.put(workflowId, { source: { type: 'push' } });
  assert.equal(await statusAt(atom), 200);

  const { id: teamId } = await service.store.teams.ensure({ slug: 'leaving' });
  const { key } = await mintKey(service.store, { teamId, name: '', scopes: ['admin'], expiresAt: null });
  const theirs = new Flowhook({ url: service.url, key });
  await theirs.workflows.put('people', { source: { type: 'push' } });
  const { urls } = await theirs.feeds.create('people');
  assert.equal(await statusAt(urls?.atom ?? ''), 200);
  await service.store.teams.retire({ teamId, force: true });
  assert.equal(await statusAt(urls?.atom ?? ''), 404);
});

test('an erased person leaves a kept body, and a reader without tags gets the new content', async () => {
  const workflowId = await workflowWith(
    { id: '1', name: 'Ada Lovelace', email: 'ada@example.com' },
    { id: '2', name: 'Grace Hopper', email: 'grace@example.com' },
  );
  const { atom, json, html } = await feedOf(workflowId);
  const before = await fetch(atom);
  assert.match(await before.text(), /Ada Lovelace/);
  for (const url of [json, html]) assert.match(await (await fetch(url)).text(), /Ada Lovelace/);
  const call = await service.call('POST', `/v1/workflows/${workflowId}/erase`, { email: 'ada@example.com' });
  assert.equal(call.status, 200);
  for (const [url, headers] of [
    [atom, { 'if-none-match': before.headers.get('etag') ?? '' }],
    [json, { 'if-modified-since': new Date(Date.now() + 60_000).toUTCString() }],
    [html, {}],
  ] as const) {
    const response = await fetch(url, { headers });
    assert.equal(response.status, 200);
    const text = await response.text();
    assert.match(text, /Grace Hopper/);
    assert.doesNotMatch(text, /Lovelace|ada@/);
  }
});

test('the requests to an address are limited, and other addresses are not affected', async () => {
  const workflowId = await workflowWith();
  const { atom } = await feedOf(workflowId);
  const { atom: other } = await feedOf(workflowId);
  const statuses = await Promise.all(Array.from({ length: FEED_RATE.count + 5 }, () => statusAt(atom)));
  assert.equal(statuses.filter((status) => status === 429).length, 5);
  const limited = await fetch(atom);
  const wait = Number(limited.headers.get('retry-after'));
  assert.ok(wait >= 1 && wait <= FEED_RATE.windowMs / 1_000);
  assert.match(((await limited.json()) as { error: string }).error, /^Too many requests for this feed/);
  assert.equal(await statusAt(other), 200);
});

test('simultaneous readers share one build of a body', async () => {
  const { atom } = await feedOf(await workflowWith({ id: '1' }));
  const calls = operationsCalled();
  const statuses = await Promise.all(Array.from({ length: 20 }, () => statusAt(atom)));
  assert.equal(calls.end().filter((name) => name === 'events.history').length, 1);
  assert.deepEqual(new Set(statuses), new Set([200]));
});

test('managing feeds needs the scope `webhooks`, and feeds of other teams do not exist', async () => {
  const workflowId = await workflowWith();
  const { id } = await feedOf(workflowId);
  const client = async (slug: string, scopes: Scope[]) => {
    const { id: teamId } = await service.store.teams.ensure({ slug });
    const { key } = await mintKey(service.store, { teamId, name: '', scopes, expiresAt: null });
    return new Flowhook({ url: service.url, key, retries: 0 });
  };
  const reader = await client('default', ['read', 'queue']);
  await assert.rejects(reader.feeds.create(workflowId), Forbidden);
  await assert.rejects(reader.feeds.list(workflowId).page(), Forbidden);
  assert.equal((await (await client('default', ['webhooks'])).feeds.get(workflowId, id)).id, id);
  const stranger = await client('stranger', ['webhooks']);
  const { feeds } = stranger;
  for (const call of [
    () => feeds.create(workflowId),
    () => feeds.list(workflowId).page(),
    () => feeds.get(workflowId, id),
    () => feeds.update(workflowId, id, { limit: 1 }),
    () => feeds.rotate(workflowId, id),
    () => feeds.revoke(workflowId, id),
  ]) {
    await assert.rejects(async () => void (await call()), NotFound);
  }
});

test('settings are checked, changed one by one, and only if they are what the caller has read', async () => {
  const workflowId = await workflowWith();
  const path = `/v1/workflows/${workflowId}/feeds`;
  for (const [fields, sentence] of [
    [{ title: '' }, /^`title` must be a string of 1 to 200 characters/],
    [{ title: 'a\nb' }, /^`title`/],
    [{ title: 'x'.repeat(201) }, /^`title`/],
    [{ filter: 'chnage == "added"' }, /^`filter`: .*chnage/],
    [{ entries: 'records' }, /^`entries` must be one of record, version\. Did you mean `record`\?/],
    [{ window: '12h' }, /^`window` must be a number of days from "1d" to "365d"/],
    [{ window: '366d' }, /^`window`/],
    [{ window: 30 }, /^`window`/],
    [{ limit: 0 }, /^`limit` must be a whole number from 1 to 200/],
    [{ limt: 5 }, /Did you mean `limit`\?/],
  ] as const) {
    const { status, body } = await service.call('POST', path, fields);
    assert.equal(status, 400);
    assert.match((body as { error: string }).error, sentence);
  }
  const created = await service.call('POST', path);
  const feed = created.body as { id: string; [name: string]: unknown };
  assert.equal(created.headers.get('location'), `${path}/${feed.id}`);
  const { id, urls, createdAt, changedAt, ...settings } = feed;
  assert.deepEqual(settings, {
    workflowId,
    title: null,
    filter: null,
    entries: 'record',
    window: '30d',
    limit: 50,
  });
  const read = await service.call('GET', `${path}/${id}`);
  assert.deepEqual(read.body, feed);
  const tag = read.headers.get('etag') ?? '';
  const patch = (fields: object, headers = {}) => service.call('PATCH', `${path}/${id}`, fields, headers);
  assert.equal((await patch({ title: 'One', window: '365d' }, { 'if-match': tag })).status, 200);
  assert.equal((await patch({ title: 'Two' }, { 'if-match': tag })).status, 412);
  assert.match(((await patch({})).body as { error: string }).error, /^Send at least one of title, filter/);
  const { body } = await patch({ filter: 'change == "added"' });
  const after = (body as { feed: Record<string, unknown> }).feed;
  assert.deepEqual(
    [after.title, after.window, after.filter, after.urls],
    ['One', '365d', 'change == "added"', urls],
  );
});

test('a repeated call with an idempotency key creates nothing, and a workflow has a limit of feeds', async () => {
  const workflowId = await workflowWith();
  const create = (settings = {}, idempotencyKey?: string) =>
    flowhook.feeds.create(workflowId, settings, idempotencyKey === undefined ? {} : { idempotencyKey });
  const first = await create({ limit: 9 }, 'once');
  assert.deepEqual(await create({ limit: 9 }, 'once'), first);
  await assert.rejects(create({ limit: 10 }, 'once'), { code: 'idempotency_key_reused' });
  for (let n = 1; n < MAX_FEEDS; n++) await create();
  await assert.rejects(create(), { name: Conflict.name, code: 'feed_limit' });
  assert.deepEqual(await create({ limit: 9 }, 'once'), first);
  assert.equal((await flowhook.feeds.list(workflowId)).length, MAX_FEEDS);
  await flowhook.feeds.revoke(workflowId, first.id);
  await create();
});

test('no log line and no span contains the token of an address', async (t) => {
  const traces = await startTraceReceiver();
  t.after(() => traces.stop());
  const place = await makePlace(t, { 'default/people.yaml': 'source: { type: push }\n' }, false);
  const server = await startServerProcess({
    ...place.environment,
    FLOWHOOK_LOG_LEVEL: 'debug',
    FLOWHOOK_LOG_FORMAT: 'json',
    FLOWHOOK_LOG_REQUESTS: 'all',
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
    OTEL_BSP_SCHEDULE_DELAY: '20',
  });
  t.after(() => server.kill());
  const client = new Flowhook({ url: server.url, key: place.environment.FLOWHOOK_BOOTSTRAP_KEY });
  const { urls, id } = await client.feeds.create('people');
  const token = new URL(urls?.html ?? '').pathname.replace('/feeds/', '');
  for (const url of Object.values(urls ?? {})) {
    assert.equal(await statusAt(url), 200);
    assert.equal(await statusAt(`${url}?from=${token}`), 200);
  }
  await client.feeds.revoke('people', id);
  assert.equal(await statusAt(urls?.atom ?? '', { 'user-agent': 'reader' }), 410);
  await server.stop();
  assert.match(server.output(), /\/feeds\/\{feedAddress\}/);
  assert.doesNotMatch(server.output(), new RegExp(token));
  const spans = JSON.stringify(traces.spans) + traces.bodies.join('');
  assert.match(spans, /\/feeds\/\{feedAddress\}/);
  assert.doesNotMatch(spans, new RegExp(token));
});
