/** Jobs and workflows over HTTP: listing, following, canceling, rerunning, pausing. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { mintKey } from '../../src/teams/keys.ts';
import { type Answer, startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const shell = (script: string) => `source: { type: command, command: [sh, -c, '${script}'] }\n`;

const service = await startService({
  settings: { FLOWHOOK_MAX_RUNNING_JOBS: '8' },
  workflows: {
    'default/people.yaml': `name: People\nschedule: { cron: "0 6 * * 1-5", timezone: Europe/Berlin }\n${shell('echo one >&2; echo two >&2; echo "{\\"id\\":1}"; echo three >&2')}`,
    'default/held.yaml': shell('echo started >&2; echo "{\\"id\\":1}"; exec sleep 600'),
    'default/broken.yaml': `retries: { max: 1, backoff: 10m }\n${shell('echo no such host >&2; exit 7')}`,
    'default/buffered.yaml': `overlap: buffer\n${shell('exec sleep 600')}`,
    'default/pushed.yaml': 'source: { type: push }\n',
    'default/idle.yaml': shell('true'),
    'other/private.yaml': shell('exec sleep 600'),
  },
});
after(() => service.stop());
const other = await service.store.teams.bySlug({ slug: 'other' });
assert.ok(other);
const { key: otherKey } = await mintKey(service.store, {
  teamId: other.id,
  name: 'test',
  scopes: ['read', 'queue', 'admin'],
  expiresAt: null,
});
const { key: plainKey } = await mintKey(service.store, {
  teamId: service.team.id,
  name: 'test',
  scopes: ['read', 'queue'],
  expiresAt: null,
});

type Json = Record<string, unknown>;
const get = (path: string, headers = {}) => service.call('GET', path, undefined, headers);
const post = (path: string, headers = {}) => service.call('POST', path, undefined, headers);

/** Queues a job and returns its ID. */
async function queue(workflowId: string): Promise<string> {
  const answer = await post(`/v1/workflows/${workflowId}/queue`);
  assert.equal(answer.status, 200);
  return answer.headers.get('x-job-id') ?? '';
}

/** Polls until the response is as expected. */
function bodyUntil(path: string, what: string, holds: (body: Json) => boolean): Promise<Json> {
  return until(what, async () => {
    const body = (await get(path)).body as Json;
    return holds(body) && body;
  });
}

const inState = (id: string, state: string) =>
  bodyUntil(`/v1/jobs/${id}`, `${id} ${state}`, (job) => job.state === state);

const refused = ({ status, body }: Answer, expected: number, sentence: RegExp) => {
  assert.equal(status, expected);
  assert.match(String((body as Json).error), sentence);
};

test('a running job shows its progress and log, and publishes nothing if it is canceled', async () => {
  const id = await queue('held');
  await bodyUntil(`/v1/jobs/${id}/logs`, 'its line', ({ lines }) => /started/.test(JSON.stringify(lines)));
  const job = await inState(id, 'running');
  assert.deepEqual([job.attempt, job.priority, job.nextAttemptAt, job.cancelRequestedAt], [1, 0, null, null]);
  await bodyUntil(`/v1/jobs/${id}`, 'progress', ({ progress }) => (progress as Json | null)?.records === 1);

  const logs = (await get(`/v1/jobs/${id}/logs`)).body as { attempt: number; next: number; lines: Json[] };
  assert.deepEqual([logs.attempt, logs.next], [1, logs.lines.at(-1)?.seq]);

  const canceled = await post(`/v1/jobs/${id}/cancel`);
  assert.equal(canceled.status, 200);
  assert.equal(((canceled.body as Json).job as Json).id, id);
  const ended = await inState(id, 'canceled');
  assert.match(String(ended.error), /^Canceled over the API, with the key key_/);
  assert.equal(typeof ended.cancelRequestedAt, 'string');
  assert.deepEqual((await get('/v1/workflows/held/data')).body, []);
  assert.equal(((await get(`/v1/jobs/${id}/logs`)).body as Json).next, null);
  refused(
    await post(`/v1/jobs/${id}/cancel`),
    409,
    /already ended: it was canceled at 2\d{3}-.*Nothing is left/,
  );
  refused(await post(`/v1/jobs/${id}/run-now`), 409, /is not waiting.*Rerun the job/);
});

test('reads a log from any line, in pages, as text and as NDJSON', async () => {
  const id = await queue('people');
  await inState(id, 'finished');
  const path = `/v1/jobs/${id}/logs`;
  const texts = (lines: unknown) => (lines as Json[]).map(({ text }) => text);
  const all = (await get(path)).body as Json;
  // The engine writes the first and the last line.
  const [begun, ...written] = texts(all.lines);
  assert.deepEqual([written.slice(0, 3), all.next], [['one', 'two', 'three'], null]);
  const first = (await get(`${path}?limit=2`)).body as { lines: Json[]; next: number };
  assert.deepEqual(texts(first.lines), [begun, 'one']);
  const rest = (await get(`${path}?after=${first.next}`)).body as Json;
  assert.deepEqual([texts(rest.lines), rest.next], [written.slice(1), null]);
  assert.deepEqual(((await get(`${path}?attempt=2`)).body as Json).lines, []);

  const read = (query: string, accept: string) =>
    fetch(service.url + path + query, { headers: { 'x-api-key': service.key, accept } });
  const text = await read('?limit=1', 'text/plain');
  assert.match(await text.text(), /^2\d{3}-[\d-]+T[\d:.]+Z \w+ +\S.*\n$/);
  assert.equal(text.headers.get('content-type'), 'text/plain; charset=utf-8');
  assert.equal(
    text.headers.get('link'),
    `<${path}?limit=1&after=${(all.lines as Json[])[0]?.seq}>; rel="next"`,
  );
  const lines = (await (await read('?format=ndjson', '*/*')).text()).trim().split('\n');
  assert.deepEqual(texts(lines.map((line) => JSON.parse(line))), texts(all.lines));
  for (const query of ['attempt=0', 'limit=0', 'limit=10001', 'after=x', 'format=csv']) {
    refused(await get(`${path}?${query}`), 400, new RegExp(`\`${query.split('=')[0]}\``));
  }
});

test('a retrying job shows when and why, can run now, and can be rerun after it has failed', async () => {
  const id = await queue('broken');
  const job = await inState(id, 'retrying');
  assert.equal(job.attempt, 1);
  assert.ok(Date.parse(String(job.nextAttemptAt)) >= Date.parse(String(job.startedAt)));
  assert.match(String(job.error), /7/);
  const due = await post(`/v1/jobs/${id}/run-now`);
  assert.equal(due.status, 200);
  const failed = await inState(id, 'failed');
  assert.deepEqual([failed.attempt, failed.reason, failed.nextAttemptAt], [2, 'error', null]);
  refused(await post(`/v1/jobs/${id}/cancel`), 409, /it failed at .* \(error\)/);

  const again = await post(`/v1/jobs/${id}/rerun`, { 'idempotency-key': 'twice' });
  const next = again.headers.get('x-job-id');
  assert.equal(again.status, 200);
  assert.notEqual(next, id);
  assert.equal(again.headers.get('location'), `/v1/jobs/${next}`);
  const twin = await post(`/v1/jobs/${id}/rerun`, { 'idempotency-key': 'twice' });
  assert.equal(twin.headers.get('x-job-id'), next);
  const inTheWay = await post(`/v1/jobs/${id}/rerun`);
  refused(inTheWay, 409, /already queued/);
  assert.equal(inTheWay.headers.get('x-job-id'), next);
  await inState(String(next), 'retrying');
  assert.equal(((await post(`/v1/jobs/${next}/cancel`)).body as Json).message, 'Job canceled');
});

test('lists jobs newest first, with filters, page by page', async () => {
  const running = await queue('buffered');
  const waiting = await queue('buffered');
  await inState(running, 'running');
  const ids = async (query: string) =>
    (((await get(`/v1/jobs${query}`)).body as { jobs: Json[] }).jobs ?? []).map(({ id }) => id);
  assert.deepEqual(await ids('?workflowId=buffered'), [waiting, running]);
  assert.deepEqual(await ids('?workflowId=buffered&state=queued'), [waiting]);
  assert.deepEqual(await ids('?workflowId=buffered&state=running,retrying'), [running]);
  assert.deepEqual(await ids('?origin=schedule'), []);

  const all = await ids('');
  const paged: unknown[] = [];
  let path: string | undefined = '/v1/jobs?limit=2';
  while (path !== undefined) {
    const page: Answer = await get(path);
    paged.push(...(page.body as { jobs: Json[] }).jobs.map(({ id }) => id));
    path = /^<(.*)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
  }
  assert.deepEqual(paged, all);
  assert.deepEqual(all.slice(0, 2), [waiting, running]);

  refused(
    await get('/v1/jobs?state=runing'),
    400,
    /`state` must be one of queued, .*Did you mean `running`\?/,
  );
  refused(await get('/v1/jobs?origin=cron'), 400, /`origin` must be one of api, schedule/);
  refused(await get('/v1/jobs?limit=1001'), 400, /`limit`.*from 1 to 1000/);
  refused(await get('/v1/jobs?cursor=nonsense'), 400, /`cursor` must come from a `Link` header/);
  refused(await get('/v1/jobs?workflowId=ghost'), 404, /^No workflow found$/);

  await post(`/v1/jobs/${running}/cancel`);
  await inState(running, 'canceled');
  await inState(waiting, 'running');
  await post(`/v1/jobs/${waiting}/cancel`);
  await inState(waiting, 'canceled');
});

test('a workflow shows its source, schedule, records and jobs', async () => {
  await inState(await queue('people'), 'finished');
  const { body } = await get('/v1/workflows/people');
  const { lastJob, nextRunAt, history, ...workflow } = body as Json;
  assert.deepEqual(workflow, {
    id: 'people',
    name: 'People',
    source: { type: 'command' },
    mode: 'replace',
    schedule: { cron: '0 6 * * 1-5', timezone: 'Europe/Berlin', missed: 'run' },
    paused: false,
    pausedAt: null,
    freshUntil: null,
    staleSince: null,
    version: 1,
    records: 1,
    keep: { versions: 10, days: 30 },
    currentJob: null,
  });
  const { oldest, ...kept } = history as Json;
  assert.deepEqual([kept, (oldest as Json).version], [{ versions: 1, bytes: 0 }, 1]);
  assert.equal((lastJob as Json).state, 'finished');
  assert.ok(Date.parse(String(nextRunAt)) > Date.now());

  const list = (await get('/v1/workflows')).body as { workflows: Json[] };
  assert.deepEqual(
    list.workflows.map(({ id }) => id),
    ['broken', 'buffered', 'held', 'idle', 'people', 'pushed'],
  );
  const page = await get('/v1/workflows?limit=4');
  const next = /^<(.*)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  const rest = (await get(next)).body as { workflows: Json[] };
  assert.deepEqual(
    rest.workflows.map(({ id }) => id),
    ['people', 'pushed'],
  );
  refused(await get('/v1/workflows?cursor=x'), 400, /`cursor`/);
  refused(await get('/v1/workflows/ghost'), 404, /^No workflow found$/);
});

test('a paused workflow accepts no jobs until it is resumed; pausing requires the scope admin', async () => {
  const paused = await post('/v1/workflows/idle/pause');
  const { workflow } = paused.body as { workflow: Json };
  assert.deepEqual([paused.status, workflow.paused, workflow.nextRunAt], [200, true, null]);
  assert.equal((await post('/v1/workflows/idle/pause')).status, 200);
  refused(await post('/v1/workflows/idle/queue'), 400, /^This workflow is paused\. Resume it first$/);
  refused(await post('/v1/workflows/idle/resume', { 'x-api-key': plainKey }), 403, /scope/);
  const resumed = (await post('/v1/workflows/idle/resume')).body as { workflow: Json };
  assert.equal(resumed.workflow.paused, false);
  assert.equal((await post('/v1/workflows/idle/queue')).status, 200);

  await post('/v1/workflows/people/pause');
  const again = (await post('/v1/workflows/people/resume')).body as { workflow: Json };
  assert.ok(Date.parse(String(again.workflow.nextRunAt)) > Date.now());
});

test('resources of another team are handled like unknown ones', async () => {
  const id = (await post('/v1/workflows/private/queue', { 'x-api-key': otherKey })).headers.get('x-job-id');
  const unknown = 'job_01kadz8v3s7v0s8e1c3q5m2n4p';
  for (const [method, action] of [
    ['GET', ''],
    ['GET', '/logs'],
    ['POST', '/cancel'],
    ['POST', '/rerun'],
    ['POST', '/run-now'],
  ] as const) {
    for (const jobId of [id, unknown, 'x', '%ZZ']) {
      const answer = await service.call(method, `/v1/jobs/${jobId}${action}`);
      assert.deepEqual([answer.status, answer.body], [404, { error: 'No job found' }]);
    }
  }
  for (const [method, action] of [
    ['GET', ''],
    ['POST', '/pause'],
    ['POST', '/resume'],
  ] as const) {
    for (const workflowId of ['private', 'ghost', '%ZZ']) {
      const answer = await service.call(method, `/v1/workflows/${workflowId}${action}`);
      assert.deepEqual([answer.status, answer.body], [404, { error: 'No workflow found' }]);
    }
  }
  const listed = (await get('/v1/jobs?limit=1000')).body as { jobs: Json[] };
  assert.ok(listed.jobs.every((job) => job.id !== id));
  assert.equal((await post(`/v1/jobs/${id}/cancel`, { 'x-api-key': otherKey })).status, 200);
});
