/** Workflows created over the API, and those that belong to files. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { applyWorkflows } from '../../src/definitions/apply.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { type Answer, startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

const PUSH = { source: { type: 'push' } };
let service: TestService;

before(async () => {
  service = await startService({
    workflows: {
      'default/filed.yaml': 'source: { type: push }\n',
      'default/coded.mts': 'export default async function* () {}\n',
    },
  });
});
after(() => service.stop());

const put = (id: string, body: unknown, headers = {}) =>
  service.call('PUT', `/v1/workflows/${encodeURIComponent(id)}`, body, headers);
const get = (path: string) => service.call('GET', path);
const refused = ({ status, body }: Answer, expected: number, sentence: RegExp) => {
  assert.match(String((body as Json).error), sentence);
  assert.equal(status, expected);
};

test('creates, pushes to, changes, deletes and restores a workflow with its records', async () => {
  const made = await put('Größe 1', { ...PUSH, name: 'Sizes', key: ['email'] });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const { message, workflow } = made.body as { message: string; workflow: Json };
  assert.deepEqual([message, workflow.name, workflow.mode], ['Workflow created', 'Sizes', 'replace']);
  assert.equal(
    ((await put('Größe 1', { ...PUSH, name: 'Sizes', key: ['email'] })).body as Json).message,
    'Workflow unchanged',
  );

  const path = `/v1/workflows/${encodeURIComponent('Größe 1')}`;
  const pushed = await service.call('POST', `${path}/push`, [{ email: 'ada@example.com' }]);
  assert.equal(pushed.status, 200, JSON.stringify(pushed.body));
  assert.equal(
    ((await put('Größe 1', { ...PUSH, mode: 'upsert', key: ['email'] })).body as Json).message,
    'Workflow changed',
  );
  assert.equal(((await get(path)).body as Json).mode, 'upsert');

  assert.equal((await service.call('DELETE', path)).status, 200);
  refused(await get(path), 404, /No workflow found/);
  refused(await service.call('DELETE', path), 404, /No workflow found/);
  assert.equal(
    ((await put('Größe 1', { ...PUSH, key: ['email'] })).body as Json).message,
    'Workflow restored',
  );
  assert.equal(((await get(`${path}/data`)).body as Json[]).length, 1);
});

test('names the setting of each mistake in a definition', async () => {
  for (const [body, sentence] of [
    [{ ...PUSH, mood: 'x' }, /mood/],
    [{ ...PUSH, mode: 'replcae' }, /`mode` .*replace/],
    [
      { ...PUSH, limits: { timeout: 'soon' }, expect: { records: { min: -1 } } },
      /`limits\.timeout`.*; ?.*|`expect\.records\.min`/,
    ],
    [
      { ...PUSH, limits: { timeout: '168h', memory: '900GB' } },
      /`limits\.timeout` is 7 days.*at most 6 h.*FLOWHOOK_MAX_API_TIMEOUT.*`limits\.memory` is 900 GB.*at most 2 GB/,
    ],
    [{ ...PUSH, schedule: { every: '1h' } }, /`schedule` does not apply to push workflows/],
    [{ source: { type: 'command', command: ['id'] } }, /`source\.type` must be push or http/],
    [
      { source: { type: 'http', url: 'ftp://x', pars: 'json' } },
      /`source\.pars`.*`source\.url`|`source\.url`.*`source\.pars`/,
    ],
    [
      { source: { type: 'http', url: 'http://x/', proxy: 'http://y/' } },
      /`source\.proxy` is not allowed over the API/,
    ],
    [{}, /`source\.type` must be push or http/],
    [[], /must be a JSON object/],
  ] as const) {
    refused(await put('wrong', body), 400, sentence);
  }
  refused(await get('/v1/workflows/wrong'), 404, /No workflow found/);
  refused(await put('a/b', PUSH), 404, /1 to 200 characters without slashes/);
});

test('refuses to change a workflow that a file defines', async () => {
  refused(await put('filed', PUSH), 409, /default\/filed\.yaml/);
  refused(await put('coded', PUSH), 409, /default\/coded\.mts/);
  refused(await service.call('DELETE', '/v1/workflows/filed'), 409, /default\/filed\.yaml/);
});

test('applying files, also with prune, keeps workflows created over the API', async () => {
  assert.equal((await put('kept', PUSH)).status, 200);
  await rm(join(service.directory, 'workflows/default/coded.mts'));
  const directory = join(service.directory, 'workflows');
  const report = await applyWorkflows(service.store, {
    directory,
    prune: true,
    force: true,
    runAs: undefined,
    log: silentLogger,
  });
  assert.deepEqual([report.archived, report.missing], [['default/coded'], []]);
  assert.equal((await get('/v1/workflows/kept')).status, 200);
});

test('If-Match allows a change only if the definition is unchanged', async () => {
  await put('tagged', PUSH);
  const tag = (await get('/v1/workflows/tagged')).headers.get('etag') ?? '';
  await service.call('POST', '/v1/workflows/tagged/push', [{ id: 1 }]);
  // A new version of the records does not change the definition.
  assert.equal((await put('tagged', { ...PUSH, mode: 'upsert' }, { 'if-match': tag })).status, 200);
  refused(await put('tagged', { ...PUSH, mode: 'append' }, { 'if-match': tag }), 412, /Read it again/);
  refused(await put('nothing', PUSH, { 'if-match': tag }), 412, /does not exist yet/);
});

test('requires the scope `admin`, and separates teams', async () => {
  const { id: teamId } = await service.store.teams.ensure({ slug: 'other' });
  const key = async (scopes: ('admin' | 'queue')[]) =>
    (await mintKey(service.store, { teamId, name: 'x', scopes, expiresAt: null })).key;
  refused(await put('kept', PUSH, { 'x-api-key': await key(['queue']) }), 403, /scope `admin`/);
  const admin = { 'x-api-key': await key(['admin']) };
  refused(await service.call('DELETE', '/v1/workflows/kept', undefined, admin), 404, /No workflow found/);
  assert.equal(((await put('kept', PUSH, admin)).body as Json).message, 'Workflow created');
});

test('searches workflows by ID or name, case-insensitively, page by page', async () => {
  for (const [id, name] of [
    ['search-1', 'Orders'],
    ['search-2', 'old orders'],
    ['orders-3', 'Third'],
    ['search-4', 'Else'],
  ] as const) {
    assert.equal((await put(id, { ...PUSH, name })).status, 200);
  }
  const ids = async (query: string) => {
    const { body } = await get(`/v1/workflows?${query}`);
    return (body as { workflows: Json[] }).workflows.map(({ id }) => id);
  };
  assert.deepEqual(await ids('q=ORDERS'), ['orders-3', 'search-1', 'search-2']);
  assert.deepEqual(await ids('q=nothing%20like%20it'), []);
  const first = await get('/v1/workflows?q=orders&limit=2');
  const [, query = ''] = /\?([^>]*)>/.exec(String(first.headers.get('link'))) ?? [];
  assert.deepEqual(await ids(query), ['search-2']);
});

test('shows a definition as written and with every default, only to admin keys', async () => {
  const { directory } = service;
  const of = async (id: string) => (await get(`/v1/workflows/${id}/definition`)).body as Json;

  const filed = await of('filed');
  assert.deepEqual(
    [filed.origin, filed.file, filed.text, filed.applied],
    ['file', 'default/filed.yaml', 'source: { type: push }\n', true],
  );
  assert.equal((filed.definition as Json).mode, 'replace');

  const path = join(directory, 'workflows', 'default', 'filed.yaml');
  await writeFile(path, 'source: { type: push }\nmode: append\n');
  const newer = await of('filed');
  assert.deepEqual([newer.applied, (newer.definition as Json).mode], [false, 'replace']);
  await rm(path);
  const gone = await of('filed');
  assert.deepEqual([gone.file, gone.text, gone.applied], ['default/filed.yaml', null, null]);
  await writeFile(path, 'source: { type: push }\n');

  const sent = { name: 'Sent', source: { type: 'push' }, limits: { timeout: '5m' } };
  await put('sent', sent);
  const own = await of('sent');
  assert.deepEqual([own.origin, own.file, own.applied], ['api', null, true]);
  assert.deepEqual(JSON.parse(String(own.text)), sent);
  assert.equal('asSent' in (own.definition as Json), false);

  const { id: teamId } = await service.store.teams.ensure({ slug: 'default' });
  const reader = await mintKey(service.store, { teamId, name: 'x', scopes: ['read'], expiresAt: null });
  const asReader = { 'x-api-key': reader.key };
  refused(
    await service.call('GET', '/v1/workflows/sent/definition', undefined, asReader),
    403,
    /scope `admin`/,
  );
  refused(await get('/v1/workflows/nothing/definition'), 404, /No workflow found/);
});

test('a dry run checks a definition and changes nothing', async () => {
  const dry = (body: unknown, query = 'dryRun=true') =>
    service.call('PUT', `/v1/workflows/dry?${query}`, body);
  const { status, body } = await dry(PUSH);
  assert.deepEqual([status, Object.keys(body as Json)], [200, ['message']]);
  refused(await get('/v1/workflows/dry'), 404, /No workflow found/);
  refused(await dry({ ...PUSH, mode: 'replcae' }), 400, /`mode`/);
  refused(await dry(PUSH, 'dryRun=perhaps'), 400, /dryRun/);
});
