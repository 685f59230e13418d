/** The state of a source over the API and at a shell: shown, set, reset, and old data read again from a cursor. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { runCommand } from '../support/cli/commands.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

type Json = Record<string, unknown>;

const PEOPLE = [
  { id: '1', name: 'Ada', changed: '2026-01-01' },
  { id: '2', name: 'Grace', changed: '2026-02-01' },
  { id: '3', name: 'Emmy', changed: '2026-03-01' },
];
/** The names of the people at the source, by their id. A test changes them without changing `changed`. */
const names = new Map(PEOPLE.map(({ id, name }) => [id, name]));
/** The cursors that the source was asked with. */
const asked: string[] = [];
let answersUnchanged = 0;

/** `/since/DATE` returns the people that changed after a date, and `/all` all of them, with an `ETag`. */
const site = createServer((request, response) => {
  const [, since = ''] = /^\/since\/(.*)/.exec(request.url ?? '') ?? [];
  asked.push(since);
  const found = PEOPLE.filter(({ changed }) => changed > since);
  const body = JSON.stringify(found.map((one) => ({ ...one, name: names.get(one.id) })));
  response.setHeader('content-type', 'application/json');
  if (request.url === '/all') response.setHeader('etag', '"1"');
  if (request.url === '/all' && request.headers['if-none-match'] === '"1"') {
    answersUnchanged += 1;
    return response.writeHead(304).end();
  }
  return response.end(body);
});

const TAP = `
import { readFileSync } from 'node:fs';
const { since = '' } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const say = (message) => console.log(JSON.stringify(message));
const found = await (await fetch(process.argv[3] + '/since/' + since)).json();
say({ type: 'SCHEMA', stream: 'people', key_properties: ['id'], schema: { type: 'object' } });
for (const record of found) say({ type: 'RECORD', stream: 'people', record });
if (found.length > 0) say({ type: 'STATE', value: { since: found.at(-1).changed } });
`;

let service: TestService;
let origin: string;

before(async () => {
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  service = await startService({
    settings: { FLOWHOOK_ALLOW_NETWORKS: 'loopback' },
    workflows: {
      'default/tap.mjs': TAP,
      'default/singer.yaml': `source: { type: command, command: [node, tap.mjs, "\${state}", "${origin}"], protocol: singer, streams: [people] }\nmode: upsert\n`,
      'default/module.mts':
        `export const workflow = { mode: 'upsert' };\n` +
        `export default async function* (ctx) {\n` +
        `  for (const one of await (await ctx.fetch('${origin}/since/' + (ctx.state.get('since') ?? ''))).json()) {\n` +
        `    yield one;\n    ctx.state.set('since', one.changed);\n  }\n}\n`,
      'default/http.yaml': `source: { type: http, url: "${origin}/since/\${state.since}", state: { since: { from: $.changed, take: max, initial: "2000-01-01" } } }\nmode: upsert\n`,
      'default/whole.yaml': `source: { type: http, url: "${origin}/all" }\n`,
      'default/pushed.yaml': 'source: { type: push }\n',
      'default/command.yaml': `source: { type: command, command: [sh, -c, 'printf "{\\"id\\":\\"1\\",\\"got\\":%s}\\n" "$(cat)"'] }\n`,
      'default/endless.yaml': 'source: { type: command, command: [sleep, "600"] }\n',
    },
  });
});
after(async () => {
  await service.stop();
  site.closeAllConnections();
  site.close();
});

const stateOf = (id: string) => service.call('GET', `/v1/workflows/${id}/state`);
const set = (id: string, state: unknown, headers: Record<string, string> = {}) =>
  service.call('PUT', `/v1/workflows/${id}/state`, { state }, headers);

/** Runs the workflow, and returns how many records it added and changed. */
async function run(id: string): Promise<[added: number, changed: number]> {
  const queued = await service.call('POST', `/v1/workflows/${id}/queue`);
  const jobId = queued.headers.get('x-job-id') ?? '';
  const job = await until(`the end of ${id}`, async () => {
    const { body } = await service.call('GET', `/v1/jobs/${jobId}`);
    return (body as Json).finishedAt === null ? undefined : (body as Json);
  });
  assert.equal(job.state, 'finished', String(job.error));
  const { added, changed } = job.records as { added: number; changed: number };
  return [added, changed];
}

const flowhook = (...args: string[]) =>
  runCommand([...args, '--url', service.url], {
    directory: service.directory,
    environment: { FLOWHOOK_KEY: service.key },
  });

for (const [id, stored, earlier] of [
  ['singer', { since: '2026-03-01' }, { since: '2026-01-15' }],
  ['module', { since: '2026-03-01' }, { since: '2026-01-15' }],
  ['http', { values: { since: '2026-03-01' } }, { values: { since: '2026-01-15' } }],
] as const) {
  test(`a source of kind ${id} reads again from a cursor that was set, and then continues`, async () => {
    assert.deepEqual((await stateOf(id)).body, { state: null });
    assert.deepEqual(await run(id), [3, 0]);
    assert.deepEqual((await stateOf(id)).body, { state: stored });
    for (const one of PEOPLE) names.set(one.id, `${one.name} of ${id}`);
    // These changes have no new time, so the next run does not see them.
    assert.deepEqual(await run(id), [0, 0]);

    const done = await flowhook('state', 'set', id, JSON.stringify(earlier), '--yes');
    assert.equal(done.code, 0, done.stderr);
    asked.length = 0;
    assert.deepEqual(await run(id), [0, 2]);
    assert.deepEqual(asked, ['2026-01-15']);
    assert.deepEqual((await stateOf(id)).body, { state: stored });
    assert.deepEqual(await run(id), [0, 0]);

    const reset = await flowhook('state', 'reset', id, '--yes');
    assert.equal(reset.code, 0, reset.stderr);
    assert.deepEqual((await stateOf(id)).body, { state: null });
    assert.deepEqual(await run(id), [0, 1]);
    const { body } = await service.call('GET', `/v1/workflows/${id}/data`);
    assert.deepEqual(
      (body as Json[]).map(({ name }) => name),
      PEOPLE.map(({ name }) => `${name} of ${id}`),
    );
  });
}

test('an HTTP source without a cursor requests everything again after a reset', async () => {
  assert.deepEqual(await run('whole'), [3, 0]);
  await run('whole');
  assert.equal(answersUnchanged, 1);
  assert.equal((await service.call('DELETE', '/v1/workflows/whole/state')).status, 200);
  names.set('1', 'Ada L.');
  assert.deepEqual(await run('whole'), [0, 1]);
  assert.equal(answersUnchanged, 1);
});

test('a change is refused while a run is in progress, because its end would overwrite the state', async () => {
  const queued = await service.call('POST', '/v1/workflows/endless/queue');
  const jobId = queued.headers.get('x-job-id') ?? '';
  await until('the run', async () => {
    const { body } = await service.call('GET', `/v1/jobs/${jobId}`);
    return (body as Json).state === 'running';
  });
  for (const answer of [
    await set('endless', 1),
    await service.call('DELETE', '/v1/workflows/endless/state'),
  ]) {
    assert.equal(answer.status, 409);
    assert.equal(answer.headers.get('x-error-code'), 'state_busy');
    assert.equal(answer.headers.get('x-job-id'), jobId);
  }
  const { code, stderr } = await flowhook('state', 'set', 'endless', '1');
  assert.deepEqual([code, /in progress/.test(stderr)], [5, true], stderr);
  await service.call('POST', `/v1/jobs/${jobId}/cancel`);
  await until('the end', async () => (await set('endless', 1)).status === 200);
});

test('If-Match protects a state that has changed since it was read', async () => {
  await set('singer', { since: 'a' });
  const tag = (await stateOf('singer')).headers.get('etag') ?? '';
  const unchanged = await service.call('GET', '/v1/workflows/singer/state', undefined, {
    'if-none-match': tag,
  });
  assert.equal(unchanged.status, 304);
  assert.equal((await set('singer', { since: 'b' }, { 'if-match': tag })).status, 200);
  const late = await set('singer', { since: 'c' }, { 'if-match': tag });
  assert.deepEqual([late.status, late.headers.get('x-error-code')], [412, 'precondition_failed']);
  const deletion = await service.call('DELETE', '/v1/workflows/singer/state', undefined, { 'if-match': tag });
  assert.equal(deletion.status, 412);
  assert.deepEqual((await stateOf('singer')).body, { state: { since: 'b' } });
});

test('numbers that a double would round stay exact, from the shell and the API to the source', async () => {
  const url = `${service.url}/v1/workflows/command`;
  const headers = { 'x-api-key': service.key, 'content-type': 'application/json' };
  const textOf = async () => (await fetch(`${url}/state`, { headers })).text();
  const text = (last: number) => `{"since":1234567890123456789${last},"rate":1.50}`;
  const put = await fetch(`${url}/state`, { method: 'PUT', headers, body: `{ "state": ${text(0)} }` });
  assert.equal(put.status, 200);
  assert.equal(await textOf(), `{"state":${text(0)}}`);
  await run('command');
  assert.equal(await (await fetch(`${url}/data`, { headers })).text(), `[{"id":"1","got":${text(0)}}]`);

  const tag = (await stateOf('command')).headers.get('etag') ?? '';
  const other = { ...headers, 'if-match': tag };
  const changed = await fetch(`${url}/state`, {
    method: 'PUT',
    headers: other,
    body: `{"state":${text(1)}}`,
  });
  assert.equal(changed.status, 200);
  const late = await fetch(`${url}/state`, { method: 'DELETE', headers: other });
  assert.equal(late.status, 412, 'a state that differs only beyond the digits of a double has another ETag');

  assert.equal((await flowhook('state', 'show', 'command', '--json')).stdout, `${text(1)}\n`);
  const set = await flowhook('state', 'set', 'command', text(2), '--yes', '--json');
  assert.equal(set.stdout, `{"workflowId":"command","state":${text(2)},"previous":${text(1)}}\n`);
  assert.equal(await textOf(), `{"state":${text(2)}}`);
});

test('a state has the form of its source and at most 1 MiB', async () => {
  for (const [id, state, sentence] of [
    ['pushed', {}, /by push/],
    ['http', { since: 'x' }, /\{"values": \{"since": …\}\}/],
    ['module', { text: 'x'.repeat(1_048_576) }, /larger than 1 MiB/],
  ] as const) {
    const { status, body } = await set(id, state);
    assert.equal(status, 400);
    assert.match(String((body as Json).error), sentence);
  }
  assert.equal((await set('module', { text: 'x'.repeat(1_048_000) })).status, 200);
  const large = await set('module', { text: 'x'.repeat(2_100_000) });
  assert.equal(large.status, 413);
  const levels = 1_000_000;
  const deep = await fetch(`${service.url}/v1/workflows/endless/state`, {
    method: 'PUT',
    headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
    body: `{"state":${'['.repeat(levels)}${']'.repeat(levels)}}`,
  });
  assert.deepEqual([deep.status, /500 levels/.test(await deep.text())], [400, true]);
  assert.equal((await service.call('PUT', '/v1/workflows/module/state', {})).status, 400);
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const { status } = await service.call(
      method,
      '/v1/workflows/nobody/state',
      method === 'PUT' ? { state: 1 } : undefined,
    );
    assert.equal(status, 404);
  }
});

test('erasing a person reaches a state that was set by hand', async () => {
  await set('singer', { last: 'ada@example.org', since: 'x' });
  const erased = await service.call('POST', '/v1/workflows/singer/erase', { email: 'ada@example.org' });
  assert.equal(erased.status, 200, JSON.stringify(erased.body));
  const { state } = (await stateOf('singer')).body as { state: Json };
  assert.deepEqual([state.last === 'ada@example.org', state.since], [false, 'x']);
});

test('at a shell a state comes from an argument, a file or standard input', async () => {
  await flowhook('state', 'reset', 'module', '--yes');
  const first = await flowhook('state', 'set', 'module', '{"since": "x"}', '--json');
  assert.deepEqual(JSON.parse(first.stdout), {
    workflowId: 'module',
    state: { since: 'x' },
    previous: null,
  });
  const shown = await flowhook('state', 'show', 'module');
  assert.equal(shown.stdout, '{\n  "since": "x"\n}\n');
  assert.equal((await flowhook('state', 'show', 'module', '--json')).stdout, '{"since":"x"}\n');
  const unconfirmed = await flowhook('state', 'set', 'module', '{}');
  assert.equal(unconfirmed.code, 2);
  assert.match(unconfirmed.stderr, /will be replaced: \{"since":"x"\}.*the state was not changed/s);
  const piped = await runCommand(['state', 'set', 'module', '--file', '-', '--yes', '--url', service.url], {
    directory: service.directory,
    environment: { FLOWHOOK_KEY: service.key },
    input: '{"since":"y"}',
  });
  assert.equal(piped.code, 0, piped.stderr);
  assert.deepEqual((await stateOf('module')).body, { state: { since: 'y' } });
  for (const [args, code, sentence] of [
    [['module'], 2, /either as an argument, or with --file/],
    [['module', '{}', '--file', 'x'], 2, /either as an argument, or with --file/],
    [['module', '{since: 1}'], 2, /The state is not valid JSON/],
    [['module', '--file', 'missing.json'], 2, /--file: the file cannot be read/],
    [['modul', '{}'], 3, /Did you mean "module"\?/],
    [['http', '{"since": "x"}', '--yes'], 2, /has no `since`/],
  ] as const) {
    const done = await flowhook('state', 'set', ...args);
    assert.equal(done.code, code, done.stderr);
    assert.match(done.stderr, sentence);
  }
});
