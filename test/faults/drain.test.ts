/** The end of a server process: accepted work is finished within a limit, the rest is aborted, and a crash is reported. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bodyOf } from '../support/records/reading.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { until } from '../support/until.ts';

const KEY = 'test-key-of-the-default-team';
const WORKFLOWS = {
  'people.yaml': 'source: { type: push }\n',
  'more.yaml': 'source: { type: push }\n',
  // The program ignores SIGTERM, and reports that it is running.
  'stubborn.yaml': `source: { type: command, command: [sh, -c, "trap '' TERM; touch running; sleep 600"] }\n`,
};
/** Larger than the buffers of two sockets. */
const HEAVY = Array.from({ length: 2_400 }, (_, n) => ({ id: String(n), note: 'x'.repeat(5_000) }));

test('a stop finishes accepted work, releases jobs, and leaves nothing to repair', async (t) => {
  const place = await placeOf(t);
  const endpoint = await startEndpoint(t);
  const server = await place.start();
  assert.equal((await call(server, 'POST', '/v1/workflows/people/push', HEAVY)).status, 200);
  const subscribed = { workflowId: 'stubborn', webhookUrl: endpoint.url, events: ['workflow_started'] };
  assert.equal((await call(server, 'POST', '/v1/integrations/webhooks/subscribe', subscribed)).status, 200);
  const slow = await open(server, 'GET', '/v1/workflows/people/data');
  const stream = await open(server, 'GET', '/v1/stream');
  const streamed = bodyOf(stream);
  const waited = call(server, 'GET', '/v1/events?after=1000000&wait=20');
  const pushing = request(`${server.url}/v1/workflows/more/push`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/x-ndjson' },
    agent: false,
  });
  const pushed = once(pushing, 'response') as Promise<[IncomingMessage]>;
  pushing.write('{"id":"a"}\n');
  await until('the push runs', async () => {
    const jobs = await call(server, 'GET', '/v1/jobs?workflowId=more');
    return JSON.parse(jobs.text).jobs[0]?.state === 'running';
  });
  // Last: an attempt of a delivery may take 15 s, even on a busy machine.
  const queued = await call(server, 'POST', '/v1/workflows/stubborn/queue');
  const jobId = String(queued.headers['x-job-id']);
  await until('the program runs', () => existsSync(place.file('running')));
  const delivery = await endpoint.next();

  server.process.kill('SIGTERM');
  const exited = once(server.process, 'exit');
  await until('new connections are refused', () => isRefused(server.url));
  delivery.writeHead(204).end();
  assert.match((await streamed).toString(), /^: The service is stopping/m);
  assert.deepEqual(JSON.parse((await waited).text).events, []);
  pushing.end('{"id":"b"}\n');
  const [answer] = await pushed;
  assert.equal(answer.statusCode, 200, (await bodyOf(answer)).toString());
  assert.equal(answer.headers.connection, 'close');
  assert.deepEqual(JSON.parse((await bodyOf(slow)).toString()), HEAVY);
  assert.deepEqual(await exited, [0, null], server.output());
  await until('it says what was cut', () =>
    /interrupted work in progress: 1 job released$/m.test(server.output()),
  );
  const log = await stat(place.file('../../data/flowhook.db-wal')).catch(() => ({ size: 0 }));
  assert.equal(log.size, 0);

  const again = await place.start();
  const job = async () => JSON.parse((await call(again, 'GET', `/v1/jobs/${jobId}`)).text);
  await until('the job runs again', async () => (await job()).state === 'running');
  assert.equal((await job()).attempt, 2);
  assert.equal((await job()).error, null);
  assert.equal((await call(again, 'GET', '/v1/workflows/more/data')).text, '[{"id":"a"},{"id":"b"}]');
  assert.doesNotMatch(again.output(), /reclaimed/);
  await again.stop();
  // The endpoint received `workflow_started` once, and responded.
  assert.equal(endpoint.arrived, 1);
});

test('requests that hang are aborted at the deadline, and aborted attempts are repeated', async (t) => {
  const place = await placeOf(t);
  const endpoint = await startEndpoint(t);
  const server = await place.start({ FLOWHOOK_DRAIN_SECONDS: '3' });
  await call(server, 'POST', '/v1/workflows/people/push', HEAVY);
  const subscribed = { workflowId: 'more', webhookUrl: endpoint.url, events: ['workflow_finished'] };
  await call(server, 'POST', '/v1/integrations/webhooks/subscribe', subscribed);
  // One client never reads, and the other never ends its headers.
  const slow = await open(server, 'GET', '/v1/workflows/people/data');
  slow.on('error', () => undefined);
  const half = connect(Number(new URL(server.url).port), '127.0.0.1');
  half.on('error', () => undefined);
  half.write('GET /livez HTTP/1.1\r\nhost: a\r\n');
  // Last, as above.
  await call(server, 'POST', '/v1/workflows/more/push', [{ id: 'a' }]);
  await endpoint.next();
  assert.notEqual(await server.stop(), null);
  // If the machine stalls, there is no time left to count them.
  const cut =
    /interrupted work in progress: 1 request aborted, 1 delivery attempt, which will be retried$|could not stop/m;
  await until('it says what was cut', () => cut.test(server.output()));
  half.destroy();

  const [first] = endpoint.ids;
  const again = await place.start();
  (await endpoint.next()).writeHead(204).end();
  assert.deepEqual(endpoint.ids, [first, first]);
  await again.stop();
});

test('readiness fails first, for the configured time, and a second signal stops immediately', async (t) => {
  const place = await placeOf(t);
  const server = await place.start({ FLOWHOOK_DRAIN_SECONDS: '600', FLOWHOOK_DRAIN_DELAY_SECONDS: '300' });
  assert.equal((await call(server, 'GET', '/readyz')).status, 200);
  // Twice at the same time, as a terminal and npm send it.
  server.process.kill('SIGINT');
  server.process.kill('SIGINT');
  await until('it is not ready', async () => (await call(server, 'GET', '/readyz')).status === 503);
  assert.equal((await call(server, 'GET', '/v1/integrations/webhooks/list')).status, 200);
  const pushed = await call(server, 'POST', '/v1/workflows/more/push', [{ id: 'a' }]);
  assert.equal(pushed.status, 200, pushed.text);
  const exited = once(server.process, 'exit');
  server.process.kill('SIGTERM');
  assert.deepEqual(await exited, [1, null]);
  await until('it says so', () => /exits immediately after a second signal/.test(server.output()));
});

test('an uncaught error leaves a last log line, an exit code and no children', async (t) => {
  const place = await placeOf(t);
  const crash = join(place.directory, 'crash.mjs');
  await writeFile(crash, `process.on('SIGUSR2', () => Promise.reject(new Error('what nobody foresaw')));\n`);
  const server = await place.start({ NODE_OPTIONS: `--import=${crash}` });
  await call(server, 'POST', '/v1/workflows/stubborn/queue');
  const pid = await until('its pid', async () => {
    const jobs = await call(server, 'GET', '/v1/jobs?workflowId=stubborn');
    const { id } = JSON.parse(jobs.text).jobs[0];
    const log = (await call(server, 'GET', `/v1/jobs/${id}/logs`)).text;
    return Number(/runs as process (\d+)/.exec(log)?.[1]);
  });
  const closed = once(server.process, 'close');
  server.process.kill('SIGUSR2');
  assert.deepEqual(await closed, [1, null]);
  const last = await until('the last line', () => server.output().split('\n').findLast(isFatal));
  assert.match(last, /what nobody foresaw/);
  assert.match(last, /service\.crashed: No acknowledged data is lost/);
  await until('its program is gone', () => !isAlive(pid));
});

test('a log that cannot be written loses lines, but does not stop the service', async (t) => {
  if (!existsSync('/dev/full')) return t.skip('there is no /dev/full here');
  const place = await placeOf(t);
  const server = await place.start({}, { errors: '/dev/full' });
  assert.equal((await call(server, 'GET', '/v1/integrations/webhooks/list')).status, 200);
  assert.equal((await call(server, 'POST', '/v1/workflows/more/push', [{ id: 'a' }])).status, 200);
  assert.equal(await server.stop(), 0);
});

function isFatal(line: string): boolean {
  return line.includes('"level":"fatal"');
}

function isAlive(pid: number): boolean {
  try {
    // A zombie without a reaper, as in a container without an init process, is not running.
    return process.kill(pid, 0) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

async function placeOf(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-drain-'));
  const workflows = join(directory, 'workflows', 'default');
  await mkdir(workflows, { recursive: true });
  for (const [name, text] of Object.entries(WORKFLOWS)) await writeFile(join(workflows, name), text);
  const servers: ServerProcess[] = [];
  t.after(async () => {
    for (const { process } of servers) process.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  return {
    directory,
    /** A file in the working directory of the commands. */
    file: (name: string) => join(workflows, name),
    async start(settings: Record<string, string> = {}, options: { errors?: string } = {}) {
      const server = await startServerProcess(
        {
          FLOWHOOK_DATA: join(directory, 'data'),
          FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
          FLOWHOOK_BOOTSTRAP_KEY: KEY,
          FLOWHOOK_DRAIN_SECONDS: '120',
          ...settings,
        },
        options,
      );
      servers.push(server);
      return server;
    },
  };
}

/** An endpoint whose responses the test sends. */
async function startEndpoint(t: TestContext) {
  const ids: string[] = [];
  const arrived: ServerResponse[] = [];
  const server = createServer((incoming, response) => {
    ids.push(String(incoming.headers['webhook-id']));
    arrived.push(response);
    incoming.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  let taken = 0;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    ids,
    get arrived() {
      return arrived.length;
    },
    async next(): Promise<ServerResponse> {
      const response = await until('a delivery', () => arrived[taken]);
      taken += 1;
      return response;
    },
  };
}

function open(server: ServerProcess, method: string, path: string, body?: unknown): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const sent = request(server.url + path, {
      method,
      headers: { 'x-api-key': KEY, ...type },
      // A separate connection: a kept-alive one would be reused after the end.
      agent: false,
    });
    sent.on('response', resolve).on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function call(server: ServerProcess, method: string, path: string, body?: unknown) {
  const response = await open(server, method, path, body);
  const text = (await bodyOf(response)).toString();
  return { status: response.statusCode, headers: response.headers, text };
}

function isRefused(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => resolve(true));
  });
}
