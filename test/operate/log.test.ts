/** The log of a running service: one line for each unit of work, connected by ids. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { makePlace } from '../support/cli/place.ts';
import { startTraceReceiver } from '../support/observe/trace-receiver.ts';
import { startReceiver } from '../support/receiver.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

type Line = Record<string, unknown>;

const WORKFLOWS = {
  'default/people.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
  'default/broken.yaml': `retries: { max: 0 }\nsource: { type: command, command: [sh, -c, 'exit 7'] }\n`,
};

async function start(t: TestContext, settings: Record<string, string>) {
  const place = await makePlace(t, WORKFLOWS, false);
  const server = await startServerProcess({
    ...place.environment,
    FLOWHOOK_ALLOW_NETWORKS: 'loopback',
    ...settings,
  });
  t.after(() => server.kill());
  const ask = (method: string, path: string, headers: Record<string, string> = {}, body?: object) =>
    fetch(server.url + path, {
      method,
      headers: {
        'x-api-key': String(place.environment.FLOWHOOK_BOOTSTRAP_KEY),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return { ask, server };
}

/** Resolves with the result of `look`, which is called after each output of the process. */
function until<T>({ process: { stderr } }: ServerProcess, look: () => T | undefined): Promise<T> {
  return new Promise((resolve) => {
    const check = () => {
      const found = look();
      if (found === undefined) return;
      stderr?.off('data', later);
      resolve(found);
    };
    // After the listener that collects the output.
    const later = () => setImmediate(check);
    stderr?.on('data', later);
    check();
  });
}

test('a request, its job and its delivery each have a line, connected by ids', async (t) => {
  const traces = await startTraceReceiver();
  t.after(() => traces.stop());
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const { ask, server } = await start(t, {
    FLOWHOOK_LOG_FORMAT: 'json',
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
  });
  const lines = () =>
    server
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line);
  const named = (message: string, fields: Line = {}) =>
    lines().filter(
      (line) => line.msg === message && Object.entries(fields).every(([name, value]) => line[name] === value),
    );
  const one = async (message: string, fields: Line) => {
    const found = await until(server, () => named(message, fields)[0]);
    assert.equal(named(message, fields).length, 1, message);
    return found;
  };

  await ask(
    'POST',
    '/v1/integrations/webhooks/subscribe',
    {},
    {
      workflowId: 'people',
      webhookUrl: receiver.url,
      events: ['workflow_finished'],
    },
  );
  const queued = await ask('POST', '/v1/workflows/people/queue?why=x', { 'x-request-id': 'my-request' });
  const jobId = queued.headers.get('x-job-id');
  const request = await one('request.completed', { requestId: 'my-request' });
  const job = await one('job.finished', { jobId });
  const delivery = await one('delivery.attempted', { type: 'workflow_finished' });
  assert.deepEqual(
    [request.level, request.method, request.route, request.status],
    ['info', 'POST', '/v1/workflows/{workflowId}/queue', 200],
  );
  assert.deepEqual([job.workflowId, job.attempt, job.emitted, job.version], ['people', 1, 1, 1]);
  assert.deepEqual([delivery.attempt, delivery.outcome, delivery.next], [1, 'ok', 'delivered']);
  assert.equal(delivery.eventId, receiver.received[0]?.event.id);
  assert.match(String(request.traceId), /^[0-9a-f]{32}$/);
  assert.deepEqual([job.traceId, delivery.traceId], [request.traceId, request.traceId]);
  assert.deepEqual([job.teamId, delivery.teamId], [request.teamId, request.teamId]);
  assert.match(String(request.time), /^\d{4}-\d\d-\d\dT.*Z$/);

  const broken = (await ask('POST', '/v1/workflows/broken/queue')).headers.get('x-job-id');
  const failed = await one('job.failed', { jobId: broken });
  assert.deepEqual([failed.level, failed.state, failed.reason], ['warn', 'failed', 'error']);
  assert.deepEqual(named('request.failed'), []);
  assert.equal(await server.stop(), 0);
});

test('settings select readable lines and which requests are logged', async (t) => {
  const { ask, server } = await start(t, { FLOWHOOK_LOG_FORMAT: 'pretty', FLOWHOOK_LOG_REQUESTS: 'off' });
  const queued = await ask('POST', '/v1/workflows/people/queue');
  const jobId = queued.headers.get('x-job-id') ?? '';
  const line = await until(server, () =>
    server
      .output()
      .split('\n')
      .find((one) => one.includes('job.finished')),
  );
  assert.match(line, /^\d\d:\d\d:\d\d\.\d{3} info {2}job\.finished /);
  assert.match(line, new RegExp(`jobId=${jobId} attempt=1 .*version=1`));
  assert.doesNotMatch(server.output(), /request\.completed/);
  assert.equal(await server.stop(), 0);
});
