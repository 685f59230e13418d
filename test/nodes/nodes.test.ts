/** Several nodes on one PostgreSQL, with different roles. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { applyWorkflows } from '../../src/definitions/apply.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';
import { testDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

process.env.FLOWHOOK_TEST_STORE = 'postgres';
const database = await testDatabase('');
const api = await startService({ settings: { ...database.settings, FLOWHOOK_ROLE: 'api' } });
after(async () => {
  await api.stop();
  await database.drop();
});

const people = (name: string) =>
  `source: { type: command, command: [printf, '{"id":1,"name":"${name}"}\\n'] }\n`;

/** A node on the database of this file, stopped after the test. */
async function node(
  t: TestContext,
  settings: Record<string, string>,
  workflows: Record<string, string> = {},
): Promise<TestService> {
  const service = await startService({ workflows, settings: { ...database.settings, ...settings } });
  t.after(() => service.stop());
  return service;
}

/** Resolves with the first result of `look` that is not undefined. Calls it again whenever the node reports a change. */
function seen<T>({ store }: TestService, look: () => Promise<T | undefined>): Promise<T> {
  return new Promise((resolve, reject) => {
    const again = () => {
      look().then((found) => {
        if (found === undefined) return;
        unwatch();
        resolve(found);
      }, reject);
    };
    const unwatch = store.watch(again);
    again();
  });
}

test('one node serves HTTP, one runs jobs, one delivers, and each reports the roles it lacks', async (t) => {
  const workflows = { 'default/people.yaml': people('Ada') };
  const first = await node(t, {}, workflows);
  assert.deepEqual(
    first.workflows?.created,
    ['default/people'],
    'an empty database is filled from the files',
  );
  await first.stop();

  const worker = await node(t, { FLOWHOOK_ROLE: 'worker' }, workflows);
  const sender = await node(t, { FLOWHOOK_ROLE: 'sender', FLOWHOOK_ALLOW_NETWORKS: 'loopback' });
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  await api.call('POST', '/v1/integrations/webhooks/subscribe', {
    workflowId: 'people',
    webhookUrl: receiver.url,
    events: ['workflow_finished'],
  });
  assert.equal((await api.call('POST', '/v1/workflows/people/queue')).status, 200);
  await receiver.until((received) => received.length === 1, 'the end of the job');
  assert.deepEqual((await api.call('GET', '/v1/workflows/people/data')).body, [{ id: '1', name: 'Ada' }]);

  for (const other of [worker, sender]) {
    const { status, body } = await other.call('GET', '/v1/workflows/people/data');
    assert.equal(status, 404);
    assert.match((body as { error: string }).error, /no API.*FLOWHOOK_ROLE is all or api/);
    assert.equal((await other.call('GET', '/livez')).status, 200);
  }
  for (const each of [api, worker, sender]) {
    assert.equal((await each.call('GET', '/readyz')).status, 200);
    assert.equal((await fetch(`${each.url}/metrics`)).status, 200);
  }
});

test('a job is run by the node whose files are the applied ones', async (t) => {
  const old = await node(t, { FLOWHOOK_ROLE: 'worker' }, { 'default/people.yaml': people('Grace') });
  const names = (service: TestService) => {
    const { different, unapplied, missing } =
      service.comparison ?? assert.fail('the files were not compared');
    return { different, unapplied, missing };
  };
  assert.deepEqual(names(old), { different: ['default/people'], unapplied: [], missing: [] });
  const queued = await api.call('POST', '/v1/workflows/people/queue');
  const id = queued.headers.get('x-job-id') ?? '';
  await old.engine.tick();
  assert.equal((await api.store.jobs.get({ teamId: api.team.id, id }))?.state, 'queued');

  const fitting = await node(
    t,
    {},
    { 'default/people.yaml': people('Ada'), 'default/new.yaml': people('x') },
  );
  assert.deepEqual(names(fitting), { different: [], unapplied: ['default/new'], missing: [] });
  const job = await seen(fitting, async () => {
    const now = await api.store.jobs.get({ teamId: api.team.id, id });
    return now?.finishedAt === null ? undefined : now;
  });
  assert.equal(job?.state, 'finished');
});

test('a node that has not yet seen the applied definitions releases the job that it has claimed', async (t) => {
  const worker = await node(t, { FLOWHOOK_ROLE: 'worker' }, { 'default/people.yaml': people('Ada') });
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-newer-'));
  t.after(() => rm(directory, { recursive: true }));
  await mkdir(join(directory, 'default'));
  const apply = async (name: string) => {
    await writeFile(join(directory, 'default', 'people.yaml'), people(name));
    const how = { prune: false, force: false, runAs: undefined, log: silentLogger };
    await applyWorkflows(api.store, { directory, ...how });
  };
  const job = await until('the job was claimed and left', async () => {
    await apply('Ada');
    await worker.reload();
    await apply('Grace');
    const queued = await api.call('POST', '/v1/workflows/people/queue');
    const place = { teamId: api.team.id, id: queued.headers.get('x-job-id') ?? '' };
    // The first claim may have started before the job existed.
    for (let claims = 0; claims < 2; claims += 1) await worker.engine.tick();
    const now = await api.store.jobs.get(place);
    if (now?.state !== 'queued') return now;
    // The worker also compares the definitions by itself. It did so before its claim.
    await api.store.jobs.cancel({ ...place, by: 'test' });
  });
  assert.deepEqual([job.state, job.failures, job.crashes], ['retrying', 0, 0]);
  await worker.engine.tick();
  const later = await api.store.jobs.get({ teamId: api.team.id, id: job.id });
  assert.equal(later?.attempt, job.attempt, 'once');
});

test('a key revoked on one node soon stops working on the others', async (t) => {
  const other = await node(t, { FLOWHOOK_ROLE: 'api' });
  const { key, record } = await mintKey(api.store, {
    teamId: api.team.id,
    name: 'x',
    scopes: ['read'],
    expiresAt: null,
  });
  const ask = () => other.call('GET', '/v1/workflows', undefined, { 'x-api-key': key });
  assert.equal((await ask()).status, 200, 'a new key works immediately');
  await api.store.keys.revoke({ id: record.id });
  const { status } = await seen(other, async () => {
    const answer = await ask();
    return answer.status === 200 ? undefined : answer;
  });
  assert.equal(status, 401);
});

test('if several nodes start on an empty database at the same time, one of them creates the first key', async () => {
  const empty = await testDatabase('');
  const settings = { ...empty.settings, FLOWHOOK_BOOTSTRAP_KEY: '' };
  const nodes = await Promise.all([1, 2].map(() => startService({ settings })));
  assert.equal(nodes.filter(({ firstKey }) => firstKey !== undefined).length, 1);
  assert.equal((await nodes[0]?.store.keys.list({ limit: 100 }))?.length, 1);
  for (const each of nodes) await each.stop();
  await empty.drop();
});

test('a second node in the same data directory fails to start until the first has stopped', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-nodes-'));
  const start = () => startService({ directory, settings: database.settings });
  const first = await start();
  await assert.rejects(start(), /data directory .*in use by another flowhook server.*FLOWHOOK_DATA/);
  assert.equal((await first.call('GET', '/v1/workflows')).status, 200);
  await first.stop();
  await (await start()).stop();
  await rm(directory, { recursive: true });
});
