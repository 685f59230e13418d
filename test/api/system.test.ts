/** The state of the instance, for operators. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Flowhook, Unauthorized } from '../../client/src/flowhook-client.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const service = await startService({
  workflows: { 'default/held.yaml': "source: { type: command, command: [sleep, '600'] }\n" },
  settings: { FLOWHOOK_KEEP_JOBS: '70', FLOWHOOK_DATABASE_POOL: '7' },
});
const flowhook = new Flowhook({ url: service.url, key: service.key });
after(() => service.stop());

test('shows versions, the database, this node and its settings, but no secret', async () => {
  const system = await flowhook.system();
  const { port } = new URL(service.url);
  assert.equal(system.node, process.versions.node);
  assert.match(system.version, /^\d+\.\d+\.\d+/);
  assert.deepEqual([system.role, system.url, system.listening.port], ['all', service.url, Number(port)]);
  assert.ok(Math.abs(Date.parse(system.startedAt) - Date.now()) < 60_000);
  assert.match(system.nodeId, /^(local|node_[0-9a-z]+)$/);
  assert.ok(system.database.bytes > 0 && system.database.schema >= 8);
  assert.ok(system.memory.residentBytes > system.memory.heapUsedBytes);
  assert.ok(system.eventLoop.p99Ms >= system.eventLoop.p50Ms);

  const setting = (name: string) => {
    const { value, origin, from } = system.settings.find((one) => one.name === name) ?? {};
    return [value, origin, from];
  };
  assert.deepEqual(setting('keepJobs'), ['70', 'environment', 'FLOWHOOK_KEEP_JOBS']);
  assert.deepEqual(setting('keepJobsDays'), ['30', 'default', null]);
  assert.deepEqual(setting('bootstrapKey'), ['***', 'environment', 'FLOWHOOK_BOOTSTRAP_KEY']);
  assert.deepEqual(setting('allowNetworks'), ['loopback,private', 'default', null]);
  assert.ok(!JSON.stringify(system).includes(service.key));
});

test('hides the password in the public URL', async (t) => {
  const settings = { FLOWHOOK_PUBLIC_URL: 'https://ada:hush@hooks.example.com' };
  const other = await startService({ settings });
  t.after(() => other.stop());
  const { url, settings: shown } = await new Flowhook({ url: other.url, key: other.key }).system();
  assert.equal(url, 'https://ada:***@hooks.example.com/');
  assert.doesNotMatch(JSON.stringify(shown), /hush/);
});

test('counts unfinished jobs, waiting deliveries and open circuit breakers', async () => {
  await flowhook.workflows.queue('held');
  let system = await flowhook.system();
  while (system.jobs.running === 0) system = await flowhook.system();
  assert.deepEqual(system.jobs, { queued: 0, running: 1, retrying: 0, complete: true });
  assert.deepEqual(system.deliveries, {
    waiting: 0,
    oldestWaitingAt: null,
    openCircuits: 0,
    complete: true,
  });
  const broken = await startReceiver({ status: () => 500 });
  const { id } = await flowhook.webhooks.create({ url: broken.url, events: ['workflow_failed'] });
  for (let n = 0; n < 12; n++) await flowhook.webhooks.test(id);
  while (system.deliveries.openCircuits === 0) system = await flowhook.system();
  assert.equal(system.deliveries.waiting, 12);
  assert.ok(Date.parse(system.deliveries.oldestWaitingAt ?? '') <= Date.now());
  await broken.stop();
});

test('requires the scope `operator`', async () => {
  const { key } = await mintKey(service.store, {
    teamId: service.team.id,
    name: '',
    scopes: ['admin'],
    expiresAt: null,
  });
  await assert.rejects(new Flowhook({ url: service.url, key }).system(), Unauthorized);
});
