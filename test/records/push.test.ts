/** Pushes over HTTP. Deterministic, except for the printed durations and memory sizes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type ClientRequest, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { after, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { startService } from '../support/service.ts';

const PUSHED = 'source: { type: push }\n';
const service = await startService({
  workflows: {
    'default/people.yaml': PUSHED,
    'default/formats.yaml': PUSHED,
    'default/upserted.yaml': `${PUSHED}mode: upsert\nkey: [mail]\n`,
    'default/guarded.yaml': `${PUSHED}expect: { records: { min: 2 } }\nlimits: { records: 4 }\n`,
    'default/twice.yaml': PUSHED,
    'default/broken.yaml': PUSHED,
    'default/large.yaml': PUSHED,
    'default/slow.yaml': `${PUSHED}limits: { timeout: 300ms }\n`,
    'default/fetched.yaml': 'source: { type: command, command: ["true"] }\n',
  },
});
after(() => service.stop());

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
}

/** Opens a push without sending its body yet. */
function openPush(
  workflowId: string,
  headers: Record<string, string> = {},
  query = '',
  agent?: Agent,
): { request: ClientRequest; answer: Promise<Answer> } {
  const request = httpRequest(`${service.url}/v1/workflows/${workflowId}/push${query}`, {
    method: 'POST',
    agent,
    headers: { 'x-api-key': service.key, 'content-type': 'application/x-ndjson', ...headers },
  });
  const answer = new Promise<Answer>((resolve, reject) => {
    request.once('error', reject);
    request.once('response', async (response) => {
      // The rest of the body may be sent to a closed connection after the response.
      request.on('error', () => {});
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Answer['body'];
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
    });
  });
  answer.catch(() => {});
  return { request, answer };
}

function push(
  workflowId: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
  query = '',
): Promise<Answer> {
  const { request, answer } = openPush(workflowId, headers, query);
  request.end(body);
  return answer;
}

async function data(workflowId: string): Promise<unknown> {
  return (await service.call('GET', `/v1/workflows/${workflowId}/data`)).body;
}

async function jobOf(jobId: unknown): Promise<Record<string, unknown>> {
  return (await service.call('GET', `/v1/jobs/${jobId}`)).body as Record<string, unknown>;
}

async function typesOf(jobId: unknown): Promise<string[]> {
  const events = await service.store.events.list({
    teamId: service.team.id,
    afterSequence: 0,
    limit: 10_000,
  });
  return events.filter((event) => event.jobId === jobId).map((event) => event.type);
}

test('a push is published when the response arrives, and is a job like any other', async () => {
  const { status, headers, body } = await push(
    'people',
    '{"id":1,"name":"Ada"}\n{"id":2}\n{"id":1,"name":"A."}',
  );
  assert.equal(status, 200);
  assert.deepEqual(body, {
    message: 'Records published',
    jobId: headers['x-job-id'],
    version: 1,
    records: { total: 2, added: 2, changed: 0, removed: 0 },
  });
  assert.equal(headers.location, `/v1/jobs/${body.jobId}`);
  assert.deepEqual(await data('people'), [{ id: '1', name: 'A.' }, { id: '2' }]);
  const { origin, state, version, attempt } = await jobOf(body.jobId);
  assert.deepEqual(
    { origin, state, version, attempt },
    { origin: 'push', state: 'finished', version: 1, attempt: 1 },
  );
  assert.deepEqual(await typesOf(body.jobId), [
    'workflow_queued',
    'workflow_started',
    'workflow_data_change',
    'workflow_finished',
  ]);
  const again = await push('people', '{"id":2}');
  assert.deepEqual(again.body.records, { total: 1, added: 0, changed: 0, removed: 1 });
});

test('JSON, NDJSON and CSV, compressed or not, have the same result', async () => {
  const records = [
    { id: 'a', name: 'Zoë "Z", 1', note: 'two\nlines' },
    { id: 'b', name: '' },
    { id: 'c', email: 'c@example.com', note: '[]{},😀' },
  ];
  const bodies = {
    'application/json; charset=utf-8': JSON.stringify(records, null, 2),
    'application/x-ndjson': records.map((record) => JSON.stringify(record)).join('\r\n'),
    'application/jsonl; charset=utf-8': records.map((record) => JSON.stringify(record)).join('\n'),
    'application/NDJSON': records.map((record) => JSON.stringify(record)).join('\n'),
    'application/x-jsonlines': records.map((record) => JSON.stringify(record)).join('\n'),
    'TEXT/CSV':
      'id,name,email,note\r\na,"Zoë ""Z"", 1",,"two\nlines"\r\nb,"",,\r\nc,,c@example.com,"[]{},😀"\r\n',
  };
  let version = 0;
  for (const [type, text] of Object.entries(bodies)) {
    for (const [encoding, body] of [
      [undefined, text],
      ['gzip', gzipSync(text)],
      ['zstd', zstdCompressSync(text)],
    ] as const) {
      const headers = { 'content-type': type, ...(encoding && { 'content-encoding': encoding }) };
      const { status, body: answer } = await push('formats', body, headers);
      assert.equal(status, 200, JSON.stringify(answer));
      version ||= 1;
      assert.equal(answer.version, version, `${type} ${encoding} changed something`);
    }
  }
  assert.deepEqual(await data('formats'), records);
});

test('the mode may be less destructive than the definition’s, but not more', async () => {
  await push('upserted', '{"mail":"a","n":1}\n{"mail":"b","n":1}');
  await push('upserted', '{"mail":"a","n":2}', {}, '?mode=append');
  await push('upserted', '{"mail":"b","n":2}\n{"mail":"c","n":2}', {}, '?mode=upsert');
  assert.deepEqual(
    ((await data('upserted')) as { id: string; n: number }[]).map(({ id, n }) => [id, n]),
    [
      ['a', 1],
      ['b', 2],
      ['c', 2],
    ],
  );
  const wider = await push('upserted', '{"mail":"a"}', {}, '?mode=replace');
  assert.equal(wider.status, 400);
  assert.match(String(wider.body.error), /`replace` can change more .*`upsert`.* Use upsert or append/);
  const unknown = await push('upserted', '', {}, '?mode=merge');
  assert.match(String(unknown.body.error), /`mode` must be one of replace, upsert, append/);
});

test('a push with an error publishes nothing, and names the reason and the position', async () => {
  await push('guarded', '[{"id":1},{"id":2}]', { 'content-type': 'application/json' });
  const json = { 'content-type': 'application/json' };
  const csv = { 'content-type': 'text/csv' };
  for (const [body, headers, reason, sentence] of [
    ['{"id":1}', {}, 'guard', /expect\.records\.min/],
    ['{"id":1}\n{"name":"x"}', {}, 'invalid_record', /Record 2 .*`id`/],
    ['{"id":1}\n{oops}', {}, 'invalid_record', /Record 2 .*not valid JSON/],
    ['1\n2\n3\n4\n5'.replace(/\d/g, '{"id":"$&"}'), {}, 'output', /limits\.records/],
    ['{"id":1}', json, 'output', /does not start with a JSON array/],
    ['[{"id":3},{"id":4}', json, 'output', /not closed.* element 1/],
    ['id,name\n3,a\n4\n', csv, 'output', /Row 3 has 1 fields, but the header row has 2/],
    ['id,id\n3,a\n', csv, 'output', /two columns named "id"/],
    ['no gzip', { 'content-encoding': 'gzip' }, 'output', /incomplete or not valid gzip/],
    [gzipSync('{"id":3}\n{"id":4}\n').subarray(0, 20), { 'content-encoding': 'gzip' }, 'output', /gzip/],
  ] as const) {
    const answer = await push('guarded', body as string | Buffer, headers as Record<string, string>);
    assert.equal(answer.status, 422, String(body));
    assert.equal(answer.headers['x-error-code'], 'push_refused');
    assert.equal(answer.headers['x-job-reason'], reason);
    assert.match(String(answer.body.error), sentence);
    assert.deepEqual(Object.keys(answer.body), ['error']);
    const job = await jobOf(answer.headers['x-job-id']);
    assert.deepEqual([job.state, job.reason, job.error], ['failed', reason, answer.body.error]);
    assert.equal((await typesOf(job.id)).at(-1), 'workflow_failed');
  }
  assert.deepEqual(await data('guarded'), [{ id: '1' }, { id: '2' }]);
});

test('an invalid record is reported while the rest of a long body is still being sent', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const { request, answer } = openPush('guarded', {}, '', agent);
    request.write('{"name":"without an id"}\n'.repeat(5_000));
    const { status, body } = await answer;
    assert.equal(status, 422);
    assert.match(String(body.error), /Record 1 /);
    // The rest is discarded, and the connection can be reused.
    request.end('x'.repeat(4_000_000));
    const next = openPush('guarded', {}, '', agent);
    next.request.end('{"id":1}\n{"id":2}\n');
    assert.equal((await next.answer).status, 200);
  } finally {
    agent.destroy();
  }
});

test('explains errors for other workflows, other media types, and callers without a key', async () => {
  for (const [id, body, headers, status, sentence] of [
    ['fetched', '{}', {}, 400, /fetches its records itself: queue a job/],
    ['ghost', '{}', {}, 404, /No workflow found/],
    [
      'people',
      '{}',
      { 'content-type': 'application/xml' },
      415,
      /application\/json, application\/x-ndjson or text\/csv/,
    ],
    ['people', '{}', { 'content-encoding': 'br' }, 415, /gzip or zstd/],
    ['people', '{}', { 'x-api-key': 'wrong' }, 401, /Unauthorized/],
  ] as const) {
    const answer = await push(id, body, headers);
    assert.deepEqual([answer.status, sentence.test(String(answer.body.error))], [status, true], id);
  }
  const queued = await service.call('POST', '/v1/workflows/people/queue');
  assert.equal(queued.status, 400);
  assert.match(JSON.stringify(queued.body), /This workflow receives its records by push/);
});

test('a second push waits until the first ends, with or without success', async () => {
  for (const ends of [true, false]) {
    const first = openPush('twice');
    first.request.write('{"id":"first"}\n');
    await running('twice');
    const second = push('twice', '{"id":"second"}');
    if (ends) first.request.end();
    else first.request.destroy();
    if (ends) assert.equal((await first.answer).status, 200);
    assert.equal((await second).status, 200);
    assert.deepEqual(await data('twice'), [{ id: 'second' }]);
  }
});

test('a connection that is interrupted publishes nothing and ends the job as lost', async () => {
  await push('broken', '{"id":"there"}');
  for (const encoding of ['identity', 'gzip']) {
    const { request } = openPush('broken', { 'content-encoding': encoding });
    const lines = Array.from({ length: 5_000 }, (_, id) => `{"id":${id}}\n`).join('');
    request.write(encoding === 'gzip' ? gzipSync(lines).subarray(0, 5_000) : lines);
    const jobId = await running('broken');
    request.on('error', () => {});
    request.destroy();
    const job = await ended(jobId);
    assert.deepEqual([job.state, job.reason], ['failed', 'lost']);
    assert.match(String(job.error), /disconnected/);
    assert.deepEqual(await data('broken'), [{ id: 'there' }]);
  }
  const next = await push('broken', '{"id":"there"}');
  assert.deepEqual(next.body.records, { total: 1, added: 0, changed: 0, removed: 0 });
});

test('a push that takes too long gets a response while its body is still being sent, and its job fails', async () => {
  const { request, answer } = openPush('slow');
  request.write('{"id":1}\n');
  const { status, headers, body } = await answer;
  assert.deepEqual([status, headers['x-job-reason']], [408, 'timeout']);
  assert.match(String(body.error), /0\.3 s.*`limits\.timeout`/);
  request.destroy();
});

test('an idempotency key replays a success, but not an error', async () => {
  const key = { 'idempotency-key': 'once' };
  assert.equal((await push('people', '{"name":"no id"}', key)).status, 422);
  const first = await push('people', '{"id":"once"}', key);
  assert.equal(first.status, 200);
  const again = await push('people', '{"id":"once"}', key);
  assert.deepEqual([again.status, again.body], [200, first.body]);
  assert.equal(again.headers['x-job-id'], first.headers['x-job-id']);
  assert.deepEqual(await data('people'), [{ id: 'once' }]);
});

test('an idempotency key is rejected with another body, but not with the same body compressed', async () => {
  const key = { 'idempotency-key': 'compared' };
  const body = '{"id":"compared"}\n'.repeat(3);
  const first = await push('people', body, key);
  assert.equal(first.status, 200);
  const zipped = await push('people', gzipSync(body), { ...key, 'content-encoding': 'gzip' });
  assert.deepEqual([zipped.status, zipped.body], [200, first.body]);
  for (const [other, headers, path] of [
    ['{"id":"other"}', {}, 'people'],
    [body.slice(0, -1), {}, 'people'],
    ['', {}, 'people'],
    ['not gzip', { 'content-encoding': 'gzip' }, 'people'],
    [body, { 'content-type': 'application/json' }, 'people'],
  ] as const) {
    const refused = await push(path, other, { ...key, ...headers });
    assert.deepEqual([refused.status, refused.headers['x-error-code']], [422, 'idempotency_key_reused']);
  }
  assert.deepEqual(await data('people'), [{ id: 'compared' }]);
  assert.equal((await push('people', body, { 'idempotency-key': '' })).status, 400);
});

/** `PUSH_RECORDS=200000` is the long form. Even this number exceeds what may be held in memory. */
const MANY = Number(process.env.PUSH_RECORDS ?? 100_000);

test(`${MANY} records are pushed with bounded memory`, { timeout: 120_000 }, async (t) => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const heapOf = () => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = heapOf();
  const startedAt = performance.now();
  const { request, answer } = openPush('large', { 'content-type': 'application/json' });
  request.write('[');
  for (let from = 0; from < MANY; from += 1_000) {
    const batch = Array.from({ length: 1_000 }, (_, place) => {
      const id = from + place;
      return JSON.stringify({
        id,
        name: `Person ${id}`,
        email: `person-${id}@example.com`,
        note: 'x'.repeat(200),
      });
    });
    if (!request.write((from === 0 ? '' : ',') + batch.join(','))) await once(request, 'drain');
  }
  // Everything but the end has been sent: the push now holds its maximum of memory.
  const grown = heapOf() - before;
  request.end(']');
  const { status, body } = await answer;
  assert.equal(status, 200);
  assert.deepEqual(body.records, { total: MANY, added: MANY, changed: 0, removed: 0 });
  const mb = (bytes: number) => `${Math.round(bytes / 1_048_576)} MB`;
  t.diagnostic(
    `${MANY} records, ${mb(MANY * 280)}: ${Math.round(performance.now() - startedAt)} ms; at their end the heap had grown by ${mb(grown)}`,
  );
  assert.ok(grown < 24 * 1_048_576, `the heap grew by ${mb(grown)}`);
});

/** Waits until a push of this workflow is running; returns its job. */
async function running(workflowId: string): Promise<string> {
  for (;;) {
    const [newest] = await service.store.jobs.list({ teamId: service.team.id, workflowId, limit: 1 });
    if (newest?.state === 'running') return newest.id;
    await new Promise(setImmediate);
  }
}

async function ended(jobId: string): Promise<Record<string, unknown>> {
  for (;;) {
    const job = await jobOf(jobId);
    if (job.finishedAt !== null) return job;
  }
}
