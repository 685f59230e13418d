/** `flowhook data` and pushes from other processes: with a server, without one, and with one that is killed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { type Ended, runCommand, type Started, startCommand } from '../support/cli/commands.ts';
import { startReceiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';

const KEY = 'key-of-the-import-test';

interface Place {
  directory: string;
  environment: Record<string, string>;
  run(...args: string[]): Promise<Ended>;
  /** Runs a command that reads this on standard input. */
  feed(input: string, ...args: string[]): Promise<Ended>;
  start(...args: string[]): Started;
}

/** A data directory with a push workflow `people` in team `default`, `both` in two teams, and one that fetches. */
async function makePlace(t: TestContext): Promise<Place> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-import-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  for (const [path, text] of [
    ['default/people.yaml', 'source: { type: push }\n'],
    ['default/both.yaml', 'source: { type: push }\n'],
    ['other/both.yaml', 'source: { type: push }\n'],
    ['default/fetched.yaml', 'source: { type: command, command: ["true"] }\n'],
  ] as const) {
    await mkdir(join(directory, 'workflows', path, '..'), { recursive: true });
    await writeFile(join(directory, 'workflows', path), text);
  }
  const environment = {
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
    FLOWHOOK_ALLOW_NETWORKS: 'loopback',
  };
  const place: Place = {
    directory,
    environment,
    run: (...args) => runCommand(args, { directory, environment }),
    feed: (input, ...args) => runCommand(args, { directory, environment, input }),
    start: (...args) => startCommand(args, { directory, environment, input: null }),
  };
  assert.equal((await place.run('apply')).code, 0);
  return place;
}

async function storeOf(t: TestContext, { directory }: Place): Promise<Store> {
  const store = await openStore(`sqlite:${join(directory, 'data', 'flowhook.db')}`, {
    publicUrl: () => '',
    log: silentLogger,
  });
  t.after(() => store.close());
  return store;
}

test('a file is imported and read back without a server', async (t) => {
  const place = await makePlace(t);
  await writeFile(join(place.directory, 'people.csv'), 'id,name\n1,Ada\n2,Grace\n');
  const imported = await place.run('data', 'import', 'people.csv', '--workflow', 'people');
  assert.deepEqual(imported, {
    code: 0,
    stdout: 'version 1 of people: 2 records, 2 added, 0 changed, 0 removed\n',
    stderr: '',
  });
  await writeFile(join(place.directory, 'more.ndjson.gz'), gzipSync('{"id":2,"name":"G."}\n{"id":3}\n'));
  const more = await place.run(
    'data',
    'import',
    'more.ndjson.gz',
    '--workflow',
    'people',
    '--mode',
    'upsert',
    '--json',
  );
  const { jobId, ...answer } = JSON.parse(more.stdout) as Record<string, unknown>;
  assert.match(String(jobId), /^job_/);
  assert.deepEqual(answer, { version: 2, records: { total: 3, added: 1, changed: 1, removed: 0 } });

  assert.equal(
    (await place.run('data', 'get', 'people')).stdout,
    '{"id":"1","name":"Ada"}\n{"id":"2","name":"G."}\n{"id":"3"}\n',
  );
  assert.deepEqual(JSON.parse((await place.run('data', 'get', 'people', '--at', '1', '--json')).stdout), [
    { id: '1', name: 'Ada' },
    { id: '2', name: 'Grace' },
  ]);
  assert.equal(
    (await place.run('data', 'get', 'people', '--format', 'csv')).stdout,
    'id,name\r\n1,Ada\r\n2,G.\r\n3,\r\n',
  );
  const changes = (await place.run('data', 'changes', 'people', '--since', '1')).stdout.trim().split('\n');
  assert.deepEqual(
    changes.map((line) => JSON.parse(line)).map(({ type, id, version }) => [type, id, version]),
    [
      ['changed', '2', 2],
      ['added', '3', 2],
    ],
  );
  const versions = JSON.parse((await place.run('data', 'versions', 'people', '--json')).stdout) as {
    version: number;
    jobId: string;
  }[];
  assert.deepEqual(
    versions.map(({ version }) => version),
    [2, 1],
  );
  assert.equal(versions[0]?.jobId, jobId);
});

test('standard input is imported if its format is named', async (t) => {
  const place = await makePlace(t);
  const args = ['data', 'import', '-', '--workflow', 'both', '--team', 'other'];
  const unnamed = await place.feed('', ...args);
  assert.equal(unnamed.code, 2);
  assert.match(
    unnamed.stderr,
    /Standard input has no file extension to determine its format\. Set it with --format/,
  );
  const { code, stderr } = await place.feed('[{"id":"x"}]', ...args, '--format', 'json');
  assert.equal(code, 0, stderr);
  assert.equal((await place.run('data', 'get', 'both', '--team', 'other')).stdout, '{"id":"x"}\n');
  assert.equal((await place.run('data', 'get', 'both', '--team', 'default')).stdout, '');
});

test('every error says what is wrong, with its exit code', async (t) => {
  const place = await makePlace(t);
  await writeFile(join(place.directory, 'a.json'), '[{"id":1},{"name":"x"}]');
  await writeFile(join(place.directory, 'empty.csv'), 'id\n');
  await writeFile(join(place.directory, 'a.txt'), '');
  // A socket has a path, but cannot be opened.
  const socket = createServer().listen(join(place.directory, 'pipe.json'));
  t.after(() => socket.close());
  await once(socket, 'listening');
  for (const [args, code, sentence] of [
    [['import', 'a.json', '--workflow', 'people'], 1, /Record 2 is invalid: .*`id`/],
    [['import', 'empty.csv', '--workflow', 'people'], 1, /expect\.records\.min/],
    [['import', 'none.json', '--workflow', 'people'], 3, /There is no file none.json/],
    [['import', 'a.txt', '--workflow', 'people'], 2, /does not determine its format/],
    [['import', 'pipe.json', '--workflow', 'people'], 1, /ENXIO/],
    [['import', 'workflows', '--format', 'csv', '--workflow', 'people'], 2, /is a directory/],
    [['import', 'a.json', '--workflow', 'fetched'], 2, /fetches its records itself/],
    [['import', 'a.json', '--workflow', 'ghost'], 3, /No workflow "ghost" found/],
    [['import', 'a.json', '--workflow', 'both'], 2, /Choose one with --team: default, other/],
    [
      ['import', 'a.json', '--workflow', 'people', '--team', 'no'],
      3,
      /No team "no" found. Choose one of: default, other/,
    ],
    [
      ['import', 'a.json', '--workflow', 'people', '--mode', 'x'],
      2,
      /--mode must be one of replace, upsert, append/,
    ],
    [['get', 'ghost'], 3, /No workflow "ghost"/],
    [['get', 'people', '--at', '7'], 3, /No such version/],
    [['get', 'people', '--at', 'x'], 2, /--at must be a version number/],
    [['changes', 'people', '--since', '7'], 3, /No such version/],
    [['changes', 'people'], 2, /--since/],
  ] as const) {
    const ended = await place.run('data', ...args);
    assert.deepEqual([args, ended.code, ended.stdout], [args, code, ''], ended.stderr);
    assert.match(ended.stderr, sentence);
    assert.doesNotMatch(ended.stderr, /job\.failed|\n {4}at /);
  }
});

test('an import is reported to the webhooks of the running server, and waits for a push over HTTP', async (t) => {
  const place = await makePlace(t);
  const receiver = await startReceiver();
  const server = await startServerProcess(place.environment);
  t.after(async () => {
    await server.kill();
    await receiver.stop();
  });
  const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
  await fetch(`${server.url}/v1/integrations/webhooks/subscribe`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ workflowId: 'people', webhookUrl: receiver.url, events: ['workflow_finished'] }),
  });
  const wire = httpRequest(`${server.url}/v1/workflows/people/push`, { method: 'POST', headers });
  wire.write('[{"id":1}');
  const store = await storeOf(t, place);
  await runningJob(store, 'people');
  await writeFile(join(place.directory, 'two.ndjson'), '{"id":2}\n');
  const importing = place.run('data', 'import', 'two.ndjson', '--workflow', 'people', '--json');
  wire.end(']');
  await once(wire, 'response');
  const { code, stdout, stderr } = await importing;
  assert.equal(code, 0, stderr);
  const { jobId } = JSON.parse(stdout) as { jobId: string };
  await receiver.until((all) => all.some(({ event }) => event.jobId === jobId), 'the end of the import');
  const read = await fetch(`${server.url}/v1/workflows/people/data`, { headers });
  assert.deepEqual(await read.json(), [{ id: '2' }]);
});

test('an interrupted import changes nothing, and the next one succeeds', async (t) => {
  const place = await makePlace(t);
  assert.equal(
    (await place.feed('{"id":1}', 'data', 'import', '-', '--format', 'ndjson', '--workflow', 'people')).code,
    0,
  );
  const store = await storeOf(t, place);
  for (const [signal, reason] of [
    ['SIGINT', 'lost'],
    ['SIGKILL', 'lost'],
  ] as const) {
    const { process: child } = place.start(
      'data',
      'import',
      '-',
      '--format',
      'ndjson',
      '--workflow',
      'people',
    );
    child.stdin?.write('{"id":2}\n'.repeat(2_000));
    const { teamId, jobId } = await runningJob(store, 'people');
    child.kill(signal);
    await once(child, 'exit');
    assert.equal((await place.run('data', 'get', 'people')).stdout, '{"id":"1"}\n');
    if (signal === 'SIGKILL') {
      // No process was left to end the job, so the next import ends it once the lease has expired.
      const later = await openStore(`sqlite:${join(place.directory, 'data', 'flowhook.db')}`, {
        publicUrl: () => '',
        log: silentLogger,
        clock: () => Date.now() + 31_000,
      });
      const begun = await later.jobs.begin({
        teamId,
        workflowId: 'people',
        nodeId: 'later',
        leaseMs: 1,
        idempotencyKey: null,
      });
      await later.close();
      assert.equal(begun.outcome, 'begun');
    }
    const job = await store.jobs.get({ teamId, id: jobId });
    assert.deepEqual([job?.state, job?.reason], ['failed', reason]);
  }
});

test('kill -9 of the server during a push: the job is lost, and the data is unchanged', async (t) => {
  const place = await makePlace(t);
  let server = await startServerProcess(place.environment);
  t.after(() => server.kill());
  const headers = { 'x-api-key': KEY, 'content-type': 'application/x-ndjson' };
  const push = (body: string) =>
    fetch(`${server.url}/v1/workflows/people/push`, { method: 'POST', headers, body });
  assert.equal((await push('{"id":"there","name":"Ada"}')).status, 200);

  const wire = httpRequest(`${server.url}/v1/workflows/people/push`, { method: 'POST', headers });
  wire.on('error', () => {});
  for (let id = 0; id < 20_000; id++) wire.write(`{"id":${id}}\n`);
  wire.write('{"id":"there","name":"changed"}\n');
  const store = await storeOf(t, place);
  const { jobId } = await runningJob(store, 'people');
  await server.kill();

  server = await startServerProcess(place.environment);
  const job = (await (await fetch(`${server.url}/v1/jobs/${jobId}`, { headers })).json()) as Record<
    string,
    unknown
  >;
  assert.deepEqual([job.state, job.reason, job.attempt], ['failed', 'lost', 1]);
  const read = async () => (await fetch(`${server.url}/v1/workflows/people/data`, { headers })).json();
  assert.deepEqual(await read(), [{ id: 'there', name: 'Ada' }]);
  const next = (await (await push('{"id":"next"}')).json()) as { version: number; records: object };
  assert.deepEqual([next.version, next.records], [2, { total: 1, added: 1, changed: 0, removed: 1 }]);
  assert.deepEqual(await read(), [{ id: 'next' }]);
});

/** Polls until a push of the workflow is running. */
async function runningJob(store: Store, workflowId: string): Promise<{ teamId: string; jobId: string }> {
  const deadline = performance.now() + 90_000;
  const team = await store.teams.bySlug({ slug: 'default' });
  while (performance.now() < deadline) {
    const events = await store.events.list({ teamId: team?.id ?? '', afterSequence: 0, limit: 1_000 });
    for (const { jobId } of events.filter((event) => event.workflowId === workflowId)) {
      const job = await store.jobs.get({ teamId: team?.id ?? '', id: jobId ?? '' });
      if (job?.state === 'running') return { teamId: job.teamId, jobId: job.id };
    }
    await new Promise(setImmediate);
  }
  return assert.fail(`No push of ${workflowId} ran within 90 s`);
}
