/** Workflows of type `http` created over the API: their runs, and their use of the operator's secrets. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

const TOKEN = 'tok-5f1e8c';
let service: TestService;
let origin: string;
/** The headers of received requests by path. */
const came = new Map<string, IncomingHttpHeaders>();

const site = createServer((request, response) => {
  came.set(request.url ?? '', request.headers);
  response.setHeader('content-type', 'application/json').end(JSON.stringify([{ id: 1, name: 'Ada' }]));
});

before(async () => {
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  service = await startService({
    settings: { FLOWHOOK_ALLOW_NETWORKS: 'loopback', FLOWHOOK_SECRET__DEFAULT__FROM_SETTING: 'set-77aa' },
  });
  await secrets(`[${origin}]`);
});
after(async () => {
  await service.stop();
  site.closeAllConnections();
  await new Promise((resolve) => site.close(resolve));
});

async function secrets(hosts: string): Promise<void> {
  await mkdir(join(service.directory, 'secrets'), { recursive: true });
  await writeFile(
    join(service.directory, 'secrets/default.yaml'),
    `HIDDEN: hidden-1234\nTOKEN: { value: ${TOKEN}, api: true, hosts: ${hosts} }\nFROM_SETTING: { api: true, hosts: ${hosts} }\n`,
  );
}

const secret = (name: string) => `$\{secret.${name}}`;
const put = async (id: string, source: Json, more: Json = {}) =>
  service.call('PUT', `/v1/workflows/${id}`, { source: { type: 'http', ...source }, ...more });

async function run(id: string): Promise<{ state: string; error: string | null }> {
  const queued = await service.call('POST', `/v1/workflows/${id}/queue`);
  assert.equal(queued.status, 200, JSON.stringify(queued.body));
  const jobId = queued.headers.get('x-job-id') ?? '';
  const log = await fetch(`${service.url}/v1/jobs/${jobId}/logs`, {
    headers: { 'x-api-key': service.key, accept: 'text/event-stream' },
  });
  // The stream ends with the job.
  await log.text();
  return (await service.call('GET', `/v1/jobs/${jobId}`)).body as { state: string; error: string | null };
}

test('creates an http workflow with a schedule, which reads records with an allowed secret', async () => {
  const headers = { authorization: `Bearer ${secret('TOKEN')}`, 'x-second': secret('FROM_SETTING') };
  const made = await put('people', { url: `${origin}/people`, headers }, { schedule: { every: '1h' } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.ok((await service.store.workflows.get({ teamId: service.team.id, id: 'people' }))?.nextRunAt);
  const job = await run('people');
  assert.equal(job.state, 'finished', job.error ?? '');
  assert.deepEqual((await service.call('GET', '/v1/workflows/people/data')).body, [{ id: '1', name: 'Ada' }]);
  assert.equal(came.get('/people')?.authorization, `Bearer ${TOKEN}`);
  assert.equal(came.get('/people')?.['x-second'], 'set-77aa');
});

test('refuses secrets that are not marked or would be sent to other hosts, and names the setting', async () => {
  const headers = { authorization: secret('TOKEN') };
  const url = `${origin}/x`;
  for (const [source, sentence, more] of [
    [
      { url, headers: { 'x-key': secret('HIDDEN') } },
      /^`source\.headers\.x-key` uses the secret HIDDEN, which/,
    ],
    [
      { url, headers: { 'x-key': secret('NOTHING') } },
      /^`source\.headers\.x-key` uses the secret NOTHING, which/,
    ],
    [{ url: 'https://evil.example/', headers }, /^`source\.url` would receive the secret TOKEN/],
    [{ url: [url, 'https://evil.example/'], headers }, /^`source\.url\[1\]` would receive/],
    [{ url: origin.replace(/:\d+$/, ':1/'), headers }, /^`source\.url` would receive/],
    [{ url: `${origin}@evil.example/`, headers }, /source\.url/],
    [{ url: `${origin}$\{state.at}/`, headers, state: { at: '$.id' } }, /source\.url/],
    [{ url: `${origin}/?key=${secret('TOKEN')}` }, /^`source\.url` must not contain a secret/],
    [{ url, query: { key: secret('TOKEN') } }, /^`source\.query\.key` must not contain a secret/],
    [
      { url, headers: { 'Accept-Language': secret('TOKEN') } },
      /^`source\.headers\.Accept-Language` must not contain/,
    ],
    [
      { url, auth: { type: 'header', name: 'User-Agent', value: secret('TOKEN') } },
      /^`source\.auth\.value` must not contain a secret/,
    ],
    [
      { url, auth: { type: 'header', name: secret('TOKEN'), value: 'x' } },
      /^`source\.auth\.name` is not a valid header name/,
    ],
    [
      {
        url,
        auth: {
          type: 'oauth2',
          tokenUrl: 'https://evil.example/',
          clientId: 'x',
          clientSecret: secret('TOKEN'),
        },
      },
      /^`source\.auth\.tokenUrl` would receive the secret TOKEN/,
    ],
    [
      { url, headers },
      /^`fields\.leak\.default` must not contain a secret/,
      { fields: { id: '$.id', leak: { from: '$.x', default: secret('TOKEN') } } },
    ],
  ] as const) {
    const { status, body } = await put('refused', source, more);
    assert.match(String((body as Json).error), sentence);
    assert.equal(status, 400);
    assert.doesNotMatch(JSON.stringify(body), /tok-|hidden-|set-/);
  }
  const { status } = await service.call('GET', '/v1/workflows/refused');
  assert.equal(status, 404);
});

test('the next run does not send a secret that the file no longer allows', async () => {
  const sent = { url: `${origin}/later`, auth: { type: 'bearer', token: secret('TOKEN') } };
  assert.equal((await put('later', sent, { retries: { max: 0 } })).status, 200);
  await secrets('[api.example.com]');
  const job = await run('later');
  assert.equal(job.state, 'failed');
  assert.match(
    job.error ?? '',
    /`source\.url` would receive the secret TOKEN.*only to https:\/\/api\.example\.com/,
  );
  assert.equal(came.has('/later'), false);
});

const errorOf = ({ body }: { body: unknown }) => String((body as { error: unknown }).error);

test('refuses huge and deeply nested definitions with short errors', async () => {
  const url = `${origin}/x`;
  const unknown = Object.fromEntries(Array.from({ length: 6_000 }, (_, at) => [`k${at}`, 1]));
  const many = await put('many', { url, ...unknown });
  assert.equal(many.status, 400);
  assert.match(errorOf(many), /^`source\.k0` is not a known setting\. .*; and 5990 more$/);
  const open = await put('open', { url: `${origin}/${'${'.repeat(30_000)}` });
  assert.equal(open.status, 400);
  assert.ok(errorOf(open).length < 1_000);
  const classes = { f: { from: '$.a', replace: ['\\p{L}'.repeat(9_000), ''] } };
  const pattern = await put('pattern', { url, parse: 'json' }, { fields: classes });
  assert.match(errorOf(pattern), /^`fields\.f\.replace\[0\]` must be at most 1000 characters long/);
  let deep: unknown = 1;
  for (let level = 0; level < 1_000; level += 1) deep = [deep];
  const nested = await put('deep', { url, body: deep });
  assert.equal(nested.status, 400);
  assert.match(errorOf(nested), /more than 100 levels deep/);
});
