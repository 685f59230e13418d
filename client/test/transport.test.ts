/** Failed calls: retries, time limits and errors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Conflict,
  Flowhook,
  FlowhookError,
  Forbidden,
  NotFound,
  RateLimited,
  TimedOut,
  Unauthorized,
  Unavailable,
} from '../src/flowhook-client.ts';

type Answer = (request: Request) => Response | Promise<Response>;

/** A client whose calls get these responses in order; the last response repeats. */
function against(answers: Answer[], options: { retries?: number; timeoutMs?: number } = {}) {
  const requests: Request[] = [];
  const flowhook = new Flowhook({
    url: 'https://flowhook.test/',
    key: 'secret',
    ...options,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      requests.push(request);
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      return (answer as Answer)(request);
    },
  });
  return { flowhook, requests };
}

const refusal =
  (status: number, code: string, headers: Record<string, string> = {}) =>
  () =>
    new Response(JSON.stringify({ error: `Sentence of ${code}` }), {
      status,
      headers: { 'x-error-code': code, 'x-request-id': 'req_1', ...headers },
    });
const json =
  (value: unknown, headers: Record<string, string> = {}) =>
  () =>
    Response.json(value, { headers });
const busy = refusal(503, 'overloaded', { 'retry-after': '0' });

/** Never responds, and rejects when the caller aborts. */
const silent: Answer = (request) =>
  new Promise((_, reject) => {
    request.signal.addEventListener('abort', () => reject(request.signal.reason), { once: true });
  });

for (const [status, code, kind] of [
  [401, 'unauthorized', Unauthorized],
  [401, 'scope_missing', Forbidden],
  [403, 'scope_missing', Forbidden],
  [404, 'job_not_found', NotFound],
  [410, 'version_pruned', NotFound],
  [409, 'job_ended', Conflict],
  [400, 'job_already_queued', Conflict],
  [409, 'push_busy', Conflict],
  [412, 'precondition_failed', Conflict],
  [429, 'rate_limited', RateLimited],
  [503, 'overloaded', Unavailable],
  [408, 'push_timeout', TimedOut],
  [400, 'field_invalid', FlowhookError],
  [500, 'internal', FlowhookError],
] as const) {
  test(`${status} ${code} is thrown as ${kind.name}, with the details of the response`, async () => {
    const headers = { 'x-job-id': 'job_1', 'retry-after': '3' };
    const { flowhook } = against([refusal(status, code, headers)], { retries: 0 });
    const error = await flowhook.jobs.get('job_1').catch((thrown) => thrown);
    assert.equal(error.constructor, kind);
    const { message, requestId, jobId, retryAfterMs } = error;
    assert.deepEqual(
      { status: error.status, code: error.code, message, requestId, jobId, retryAfterMs },
      {
        status,
        code,
        message: `Sentence of ${code}`,
        requestId: 'req_1',
        jobId: 'job_1',
        retryAfterMs: 3_000,
      },
    );
  });
}

test('retries reads, at most `retries` times', async () => {
  const { flowhook, requests } = against([busy, busy, json({ id: 'job_1' })], { retries: 2 });
  assert.equal((await flowhook.jobs.get('job_1')).id, 'job_1');
  assert.equal(requests.length, 3);

  const other = against([busy], { retries: 1 });
  await assert.rejects(other.flowhook.jobs.get('job_1'), Unavailable);
  assert.equal(other.requests.length, 2);
});

test('retries queueing with the same idempotency key', async () => {
  const { flowhook, requests } = against([
    () => Promise.reject(new TypeError('the network is gone')),
    busy,
    json({ message: 'Job queued' }, { 'x-job-id': 'job_7' }),
  ]);
  assert.equal((await flowhook.workflows.queue('people')).jobId, 'job_7');
  const keys = new Set(requests.map((request) => request.headers.get('idempotency-key')));
  assert.equal(requests.length, 3);
  assert.equal(keys.size, 1);
  assert.match([...keys][0] ?? '', /^[0-9a-f]{32}$/);
});

test('retries idempotent calls, also after 500', async () => {
  const broken = refusal(500, 'internal');
  const { flowhook, requests } = against([broken, broken, json({ message: 'gone' })]);
  assert.equal((await flowhook.webhooks.unsubscribe('wh_1')).message, 'gone');
  assert.deepEqual(
    requests.map(({ method }) => method),
    ['DELETE', 'DELETE', 'DELETE'],
  );
  const put = against([broken, json({ workflow: { id: 'people' } })]);
  const definition = { source: { type: 'push' } } as const;
  assert.equal((await put.flowhook.workflows.put('people', definition)).id, 'people');
  // If the first attempt succeeded, the condition no longer matches.
  const once = against([broken]);
  await assert.rejects(once.flowhook.workflows.put('people', definition, { ifMatch: '"1"' }), {
    status: 500,
  });
  assert.equal(once.requests.length, 1);
});

test('a 404 counts as a successful deletion only if the response of an earlier attempt was lost', async () => {
  const lost: Answer = () => Promise.reject(new TypeError('the network is gone'));
  const unknown = refusal(404, 'webhook_not_found');
  for (const first of [lost, refusal(500, 'internal'), busy]) {
    const { flowhook } = against([first, unknown]);
    assert.deepEqual(await flowhook.webhooks.unsubscribe('wh_1'), { message: 'Removed' });
  }
  const url = 'https://example.com/hook';
  assert.deepEqual(await against([lost, unknown]).flowhook.webhooks.unsubscribeUrl({ url }), {
    message: 'Removed',
  });
  // A call that was refused unread has deleted nothing, and a 404 of a proxy says nothing about the webhook.
  const limited = refusal(429, 'rate_limited', { 'retry-after': '0' });
  const proxy: Answer = () => new Response('no such page', { status: 404 });
  for (const answers of [[unknown], [limited, unknown], [lost, proxy]]) {
    await assert.rejects(against(answers).flowhook.webhooks.unsubscribe('wh_1'), NotFound);
  }
});

test('does not retry deletions whose response cannot be replaced', async () => {
  const broken = refusal(500, 'internal');
  const itself = against([broken, refusal(401, 'unauthorized')]);
  await assert.rejects(itself.flowhook.keys.revoke('key_1', { self: true }), { status: 500 });
  const raw = against([broken, refusal(404, 'inspector_not_found')]);
  const call = { method: 'DELETE', path: '/v1/inspectors/insp_1' };
  await assert.rejects(raw.flowhook.request(call), { status: 500 });
  // Revoking another key can be retried.
  const other = against([broken, json({ key: { id: 'key_1' } })]);
  assert.equal((await other.flowhook.keys.revoke('key_1')).id, 'key_1');
  assert.deepEqual(
    [itself, raw, other].map(({ requests }) => requests.length),
    [1, 1, 2],
  );
});

test('does not retry changes without an idempotency key, unless they were refused unread', async () => {
  const { flowhook, requests } = against([busy]);
  await assert.rejects(flowhook.webhooks.rotate('wh_1'), Unavailable);
  assert.equal(requests.length, 1);

  const limited = against([
    refusal(429, 'rate_limited', { 'retry-after': '0' }),
    json({ secret: 'whsec_1' }),
  ]);
  assert.equal((await limited.flowhook.webhooks.rotate('wh_1')).secret, 'whsec_1');
});

test('throws if the service asks for a wait that is too long', async () => {
  const { flowhook, requests } = against([refusal(503, 'overloaded', { 'retry-after': '3600' })]);
  await assert.rejects(flowhook.jobs.get('job_1'), (error: Unavailable) => error.retryAfterMs === 3_600_000);
  assert.equal(requests.length, 1);
});

test('throws TimedOut without a response in time, and Unavailable without a connection', async () => {
  const { flowhook } = against([silent], { timeoutMs: 5, retries: 0 });
  await assert.rejects(flowhook.jobs.get('job_1'), TimedOut);
  const away = against([() => Promise.reject(new TypeError('refused'))], { retries: 0 });
  await assert.rejects(away.flowhook.jobs.get('job_1'), { code: 'unreachable', status: 0 });
});

test('an abort ends the call, its retries and its waits with the reason of the signal', async () => {
  const { flowhook, requests } = against([silent]);
  const abort = new AbortController();
  const call = flowhook.jobs.get('job_1', { signal: abort.signal });
  abort.abort(new Error('enough'));
  await assert.rejects(call, /enough/);
  await assert.rejects(flowhook.jobs.get('job_1', { signal: abort.signal }), /enough/);
  assert.equal(requests.length, 1);
});

test('refuses redirects, so that the key is not sent to other addresses', async () => {
  const { flowhook, requests } = against([
    () => new Response(null, { status: 307, headers: { location: 'https://elsewhere.test/' } }),
  ]);
  await assert.rejects(flowhook.jobs.get('job_1'), /redirects to another address/);
  assert.deepEqual([requests.length, requests[0]?.redirect], [1, 'manual']);
});

const ndjson =
  (chunks: string[], headers: Record<string, string> = {}) =>
  () => {
    const encoder = new TextEncoder();
    const body = new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
        controller.close();
      },
    });
    return new Response(body, { headers });
  };

test('assembles records from chunks that are split anywhere', async () => {
  const { flowhook } = against([ndjson(['{"id":"1"', '}\n{"id"', ':"2"}', '\n'])]);
  assert.deepEqual(await flowhook.workflows.readAll('people'), [{ id: '1' }, { id: '2' }]);
});

test('throws for an incomplete response instead of returning a shorter list', async () => {
  for (const answer of [
    ndjson(['{"id":"1"}\n{"id":"2"}']),
    ndjson(['{"id":"1"}\n'], { 'x-total-count': '2' }),
  ]) {
    const { flowhook } = against([answer]);
    await assert.rejects(flowhook.workflows.readAll('people'), { code: 'broken_off' });
  }
});

test('throws TimedOut for a stalled stream', async () => {
  const { flowhook } = against([() => new Response(new ReadableStream({}))], { timeoutMs: 5 });
  await assert.rejects(flowhook.workflows.readAll('people'), TimedOut);
});

test('reads records no faster than the loop consumes them, and cancels the response when the loop ends', async () => {
  let made = 0;
  let isCanceled = false;
  const endless = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          made += 1;
          controller.enqueue(new TextEncoder().encode(`{"id":"${made}"}\n`));
        },
        cancel() {
          isCanceled = true;
        },
      }),
    );
  const { flowhook } = against([endless]);
  for await (const record of flowhook.workflows.readData('people')) if (record.id === '3') break;
  assert.ok(made <= 5, `${made} were made for 3`);
  assert.ok(isCanceled);
});

const page = (status: number) => () =>
  new Response('<!doctype html><title>Welcome</title>', {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8' },
  });

for (const status of [200, 404, 500]) {
  test(`throws immediately for an HTML page with status ${status}`, async () => {
    for (const call of [
      (flowhook: Flowhook) => flowhook.jobs.get('job_1'),
      (flowhook: Flowhook) => flowhook.workflows.readAll('people'),
    ]) {
      const { flowhook, requests } = against([page(status)], { retries: status === 500 ? 0 : 2 });
      const error = await call(flowhook).catch((thrown) => thrown);
      assert.deepEqual([error.constructor, error.code, error.status], [FlowhookError, 'not_json', status]);
      assert.match(error.message, /^https:\/\/flowhook\.test returned \d+ with text\/html.* instead of JSON/);
      assert.equal(requests.length, 1);
    }
  });
}

test('retries after an error page of a proxy', async () => {
  const { flowhook, requests } = against([page(502), json({ id: 'job_1' })]);
  assert.equal((await flowhook.jobs.get('job_1')).id, 'job_1');
  assert.equal(requests.length, 2);
});

test('refuses a key that is undefined or empty, which is probably a variable that is not set', () => {
  const url = 'https://flowhook.test';
  for (const key of [undefined, '']) {
    assert.throws(
      () => new Flowhook({ url, key }),
      /`key` is missing: create one with `flowhook keys create`/,
    );
  }
  assert.ok(new Flowhook({ url }), 'a page with a session needs no key');
});

test('shows responses to `onResponse`, and calls any route', async () => {
  const seen: string[] = [];
  const fetch = async () => Response.json({ new: true }, { headers: { 'x-request-id': 'req_7' } });
  const flowhook = new Flowhook({
    url: 'https://flowhook.test',
    fetch,
    onResponse: ({ headers, status }, { path }) =>
      seen.push(`${path} ${status} ${headers.get('x-request-id')}`),
  });
  await flowhook.jobs.get('job_1');
  const response = await flowhook.request({ path: '/v1/newer', query: { limit: 1 } });
  assert.deepEqual([await response.json(), response.status], [{ new: true }, 200]);
  assert.deepEqual(seen, ['/v1/jobs/job_1 200 req_7', '/v1/newer 200 req_7']);
});

test('sends its user agent', async () => {
  const agents: (string | null)[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    agents.push(new Request(input, init).headers.get('user-agent'));
    return Response.json({});
  };
  await new Flowhook({ url: 'https://flowhook.test', fetch }).me();
  await new Flowhook({ url: 'https://flowhook.test', fetch, userAgent: 'my-app/1.2' }).me();
  assert.deepEqual(agents, ['flowhook-client/0.1.0', 'my-app/1.2 flowhook-client/0.1.0']);
});

test('reads an unpaginated list in a loop or by `await`', async () => {
  const { flowhook } = against([json({ webhooks: [{ id: 'wh_1' }, { id: 'wh_2' }] })]);
  const ids = [];
  for await (const { id } of flowhook.webhooks.list()) ids.push(id);
  assert.deepEqual(ids, ['wh_1', 'wh_2']);
  assert.deepEqual(
    (await flowhook.webhooks.list()).map(({ id }) => id),
    ids,
  );
  assert.equal((await flowhook.webhooks.list().take(1)).length, 1);
  const refused = against([refusal(401, 'unauthorized')]).flowhook.inspectors.list();
  assert.equal(await refused.catch((error: unknown) => (error as FlowhookError).status), 401);
});

test('continues a list with the cursor in `Link`', async () => {
  const link = '</v1/jobs?limit=1&cursor=am9i>; rel="next"';
  const { flowhook, requests } = against([
    json({ jobs: [{ id: 'a' }] }, { link }),
    json({ jobs: [{ id: 'b' }] }),
  ]);
  const ids = [];
  for await (const job of flowhook.jobs.list({ limit: 1, state: ['queued', 'running'] })) ids.push(job.id);
  assert.deepEqual(ids, ['a', 'b']);
  assert.deepEqual(
    requests.map((request) => new URL(request.url).search),
    ['?state=queued%2Crunning&limit=1', '?state=queued%2Crunning&limit=1&cursor=am9i'],
  );
});
