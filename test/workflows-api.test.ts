/** Workflows made over HTTP: what may be made, changed and deleted, and what belongs to files. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { silentLogger } from '../src/observe/log.ts';
import { mintKey } from '../src/teams/keys.ts';
import { applyWorkflows } from '../src/workflows/apply.ts';
import { type Answer, startService, type TestService } from './support/service.ts';

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

test('a workflow is made, takes records, is changed, deleted, and comes back with its records', async () => {
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

test('what is wrong with a definition is said by the name of the setting', async () => {
  for (const [body, sentence] of [
    [{ ...PUSH, mood: 'x' }, /mood/],
    [{ ...PUSH, mode: 'replcae' }, /`mode` .*replace/],
    [
      { ...PUSH, limits: { timeout: 'soon' }, guards: { minRecords: -1 } },
      /`limits\.timeout`.*; ?.*|`guards\.minRecords`/,
    ],
    [{ ...PUSH, schedule: { every: '1h' } }, /`schedule` has no place here/],
    [{ source: { type: 'command', command: ['id'] } }, /`source\.type` must be push or http/],
    [
      { source: { type: 'http', url: 'ftp://x', pars: 'json' } },
      /`source\.pars`.*`source\.url`|`source\.url`.*`source\.pars`/,
    ],
    [{ source: { type: 'http', url: 'http://x/', proxy: 'http://y/' } }, /`source\.proxy` has no place here/],
    [{}, /`source\.type` must be push or http/],
    [[], /must be a JSON object/],
  ] as const) {
    refused(await put('wrong', body), 400, sentence);
  }
  refused(await get('/v1/workflows/wrong'), 404, /No workflow found/);
  refused(await put('a/b', PUSH), 404, /No workflow found/);
});

test('a workflow that a file defines is changed there', async () => {
  refused(await put('filed', PUSH), 409, /default\/filed\.yaml/);
  refused(await put('coded', PUSH), 409, /default\/coded\.mts/);
  refused(await service.call('DELETE', '/v1/workflows/filed'), 409, /default\/filed\.yaml/);
});

test('applying the files, also with prune, leaves what was made over the API', async () => {
  assert.equal((await put('kept', PUSH)).status, 200);
  await rm(join(service.directory, 'workflows/default/coded.mts'));
  const directory = join(service.directory, 'workflows');
  const report = await applyWorkflows(service.store, {
    directory,
    prune: true,
    force: true,
    log: silentLogger,
  });
  assert.deepEqual([report.archived, report.missing], [['default/coded'], []]);
  assert.equal((await get('/v1/workflows/kept')).status, 200);
});

test('a change with If-Match is made only to the definition that was seen', async () => {
  await put('tagged', PUSH);
  const tag = (await get('/v1/workflows/tagged')).headers.get('etag') ?? '';
  await service.call('POST', '/v1/workflows/tagged/push', [{ id: 1 }]);
  // Another version of its records is no other definition.
  assert.equal((await put('tagged', { ...PUSH, mode: 'upsert' }, { 'if-match': tag })).status, 200);
  refused(await put('tagged', { ...PUSH, mode: 'append' }, { 'if-match': tag }), 412, /read it again/);
  refused(await put('nothing', PUSH, { 'if-match': tag }), 412, /no such workflow yet/);
});

test('the scope `admin` is needed, and each team has its own', async () => {
  const { id: teamId } = await service.store.teams.ensure({ slug: 'other' });
  const key = async (scopes: ('admin' | 'queue')[]) =>
    (await mintKey(service.store, { teamId, name: 'x', scopes, expiresAt: null })).key;
  refused(await put('kept', PUSH, { 'x-api-key': await key(['queue']) }), 401, /scope `admin`/);
  const admin = { 'x-api-key': await key(['admin']) };
  refused(await service.call('DELETE', '/v1/workflows/kept', undefined, admin), 404, /No workflow found/);
  assert.equal(((await put('kept', PUSH, admin)).body as Json).message, 'Workflow created');
});
