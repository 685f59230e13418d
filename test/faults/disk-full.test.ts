/** A full disk: writes fail with an explanation, reads work, nothing acknowledged is lost, and the service recovers automatically. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, writeSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startReceiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';
import { until } from '../support/until.ts';

const KEY = 'test-key-of-the-default-team';
const WORKFLOWS = {
  'people.yaml': 'source: { type: push }\n',
  'checked.yaml':
    'source: { type: push }\nexpect: { fields: { price: { min: 0 } }, otherwise: quarantine }\n',
  // Runs until released, and then emits more than fits on the full disk.
  'held.yaml': `source:
  type: command
  command: [sh, -c, "touch running; while ! [ -e go ]; do sleep 0.05; done; cat held.ndjson"]
`,
};
const HELD = Array.from({ length: 400 }, (_, n) => ({ id: String(n), note: 'y'.repeat(2_000) }));

test('writes fail, reads work, and the service recovers when there is space again', async (t) => {
  const disk = await smallDisk(t, '24m');
  if (disk === undefined) return t.skip('only root may mount a small disk');
  const workflows = join(disk.root, 'workflows', 'default');
  await mkdir(workflows, { recursive: true });
  for (const [name, text] of Object.entries(WORKFLOWS)) await writeFile(join(workflows, name), text);
  await writeFile(
    join(workflows, 'held.ndjson'),
    HELD.map((record) => `${JSON.stringify(record)}\n`).join(''),
  );
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const server = await startServerProcess(
    {
      FLOWHOOK_DATA: join(disk.path, 'data'),
      FLOWHOOK_WORKFLOWS: join(disk.root, 'workflows'),
      FLOWHOOK_BOOTSTRAP_KEY: KEY,
    },
    // The log is also on the full disk, and loses lines.
    { errors: join(disk.path, 'log') },
  );
  t.after(() => server.process.kill('SIGKILL'));
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(server.url + path, {
      method,
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const push = (n: number) =>
    call('POST', '/v1/workflows/people/push?mode=upsert', [{ id: String(n), note: 'x'.repeat(20_000) }]);
  const subscribed = { workflowId: 'people', webhookUrl: receiver.url, events: ['workflow_finished'] };
  assert.equal((await call('POST', '/v1/integrations/webhooks/subscribe', subscribed)).status, 200);
  assert.equal((await push(0)).status, 200);
  const records = [{ id: 'bad', price: -1 }, { id: 'good' }];
  assert.equal((await call('POST', '/v1/workflows/checked/push', records)).status, 200);
  const quarantine = '/v1/workflows/checked/quarantine';
  const accept = () => call('POST', `${quarantine}/accept`, { all: true });
  const queued = await call('POST', '/v1/workflows/held/queue');
  assert.equal(queued.status, 200);
  await until('the job runs', () => existsSync(join(workflows, 'running')));

  disk.fill();
  let acknowledged = 0;
  const refused = await until('a push is refused', async () => {
    const answer = await push(acknowledged + 1);
    if (answer.status !== 200) return answer;
    acknowledged += 1;
    disk.fill();
    return undefined;
  });
  assert.equal(refused.status, 503, refused.text);
  assert.equal(refused.headers.get('x-error-code'), 'disk_full');
  assert.match(String(refused.headers.get('retry-after')), /^\d+$/);
  assert.match(JSON.parse(refused.text).error, /disk of the data directory is full.*free or add space/);
  await until('it says that it is not ready', async () => (await call('GET', '/readyz')).status === 503);
  assert.equal((await call('GET', '/livez')).status, 200);
  const unaccepted = await accept();
  assert.deepEqual([unaccepted.status, unaccepted.headers.get('x-error-code')], [503, 'disk_full']);
  assert.equal(JSON.parse((await call('GET', quarantine)).text).records.length, 1);
  await writeFile(join(workflows, 'go'), '');
  const data = await call('GET', '/v1/workflows/people/data');
  assert.equal(data.status, 200);
  assert.deepEqual(
    JSON.parse(data.text).map(({ id }: { id: string }) => id),
    Array.from({ length: acknowledged + 1 }, (_, n) => String(n)),
  );
  assert.equal((await call('GET', '/v1/jobs?limit=10')).status, 200);

  await disk.free();
  await until('it is ready again', async () => (await call('GET', '/readyz')).status === 200);
  assert.equal((await push(acknowledged + 1)).status, 200);
  assert.equal((await accept()).status, 200);
  assert.equal(JSON.parse((await call('GET', quarantine)).text).records.length, 0);
  await receiver.until(
    (received) => new Set(received.map(({ event }) => event.id)).size === acknowledged + 2,
    'exactly the acknowledged pushes',
    60_000,
  );
  const jobPath = `/v1/jobs/${queued.headers.get('x-job-id')}`;
  await until('the job that ran all the while has ended', async () => {
    const { state, error } = JSON.parse((await call('GET', jobPath)).text);
    assert.notEqual(state, 'failed', error);
    return state === 'finished';
  });
  const held = await call('GET', '/v1/workflows/held/data');
  assert.equal(JSON.parse(held.text).length, HELD.length);
  await until('the log continues', async () =>
    /"disk\.recovered"/.test(await readFile(join(disk.path, 'log'), 'utf8')),
  );
  assert.equal(await server.stop(), 0);
});

test('a full temporary directory fails a run with an explanation, and the next one runs when there is space again', async (t) => {
  const disk = await smallDisk(t, '64k');
  if (disk === undefined) return t.skip('only root may mount a small disk');
  const workflows = join(disk.root, 'workflows', 'default');
  await mkdir(workflows, { recursive: true });
  const text = 'source: { type: command, command: [echo, \'{"id":"1"}\'] }\nretries: { max: 0 }\n';
  await writeFile(join(workflows, 'one.yaml'), text);
  disk.fill();
  const server = await startServerProcess({
    FLOWHOOK_DATA: join(disk.root, 'data'),
    FLOWHOOK_WORKFLOWS: join(disk.root, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
    TMPDIR: disk.path,
  });
  t.after(() => server.process.kill('SIGKILL'));
  const headers = { 'x-api-key': KEY };
  const run = async () => {
    const queued = await fetch(`${server.url}/v1/workflows/one/queue`, { method: 'POST', headers });
    assert.equal(queued.status, 200, await queued.text());
    const path = `${server.url}/v1/jobs/${queued.headers.get('x-job-id')}`;
    return until('the job has ended', async () => {
      const job = (await (await fetch(path, { headers })).json()) as Job;
      return job.finishedAt === null ? undefined : job;
    });
  };
  const failed = await run();
  assert.equal(failed.state, 'failed');
  assert.match(failed.error, /The temporary directory \S+ is full\. Free space .*TMPDIR/);
  await disk.free();
  const finished = await run();
  assert.equal(finished.state, 'finished', finished.error);
  assert.equal(await server.stop(), 0);
});

interface Job {
  state: string;
  error: string;
  finishedAt: string | null;
}

/** A directory with a small disk mounted below it; undefined where none can be mounted. */
async function smallDisk(t: TestContext, size: string) {
  const root = await mkdtemp(join(tmpdir(), 'flowhook-disk-'));
  const path = join(root, 'disk');
  await mkdir(path);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]).status === 0;
  t.after(async () => {
    if (mounted) spawnSync('umount', ['-l', path]);
    await rm(root, { recursive: true, force: true, maxRetries: 5 });
  });
  if (!mounted) return undefined;
  const filler = join(path, 'filler');
  return {
    root,
    path,
    /** Writes until nothing more fits. */
    fill() {
      const file = openSync(filler, 'a');
      for (const bytes of [1 << 20, 1 << 16, 1 << 12, 1]) {
        try {
          for (const chunk = Buffer.alloc(bytes); ; ) writeSync(file, chunk);
        } catch {
          // A smaller chunk may still fit.
        }
      }
      closeSync(file);
    },
    free: () => rm(filler),
  };
}
