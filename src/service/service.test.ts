/** Starting and stopping the whole service. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../../test/support/service.ts';
import { onPostgres } from '../../test/support/test-database.ts';

// On PostgreSQL the service never creates a key file.
const skip = onPostgres();

test('refuses a database whose encryption key is missing, and creates no new key', {
  skip,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-service-'));
  await (await startService({ directory })).stop();
  const key = join(directory, 'data', 'encryption.key');
  await rename(key, join(directory, 'put-away'));
  await assert.rejects(
    startService({ directory }),
    /encryption key of this database is missing.*fingerprint/,
  );
  assert.equal(existsSync(key), false);
  await rename(join(directory, 'put-away'), key);
  await (await startService({ directory })).stop();
  await rm(directory, { recursive: true, force: true });
});

test('refuses a different encryption key', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-service-'));
  await (await startService({ directory })).stop();
  const settings = { FLOWHOOK_ENCRYPTION_KEY: 'cd'.repeat(32) };
  await assert.rejects(startService({ directory, settings }), /does not match this database/);
  await rm(directory, { recursive: true, force: true });
});

test('leaves nothing running after a failed start: the same directory can be started again', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-service-'));
  const first = await startService({ directory });
  const { port } = new URL(first.url);
  const second = { directory: `${directory}-2`, settings: { FLOWHOOK_PORT: port } };
  await assert.rejects(startService(second), /EADDRINUSE/);
  await first.stop();
  await (await startService(second)).stop();
  await rm(directory, { recursive: true, force: true });
  await rm(second.directory, { recursive: true, force: true });
});

test('runs a workflow at the time of its schedule', async () => {
  let nowMs = Date.parse('2026-01-01T04:59:59Z');
  const service = await startService({
    clock: () => nowMs,
    workflows: {
      'default/daily.yaml':
        'source: { type: command, command: [printf, "{\\"id\\":1}\\n"] }\n' +
        'schedule: { cron: "0 6 * * *", timezone: Europe/Berlin }\n',
    },
  });
  const at = { teamId: service.team.id, workflowId: 'daily' };
  const published = Promise.withResolvers<void>();
  const unwatch = service.store.watch(async () => {
    if ((await service.store.records.version(at))?.number === 1) published.resolve();
  });
  nowMs = Date.parse('2026-01-01T05:00:00Z');
  await published.promise;
  unwatch();
  const [job, ...more] = await service.store.jobs.list({ ...at, limit: 10 });
  assert.deepEqual([job?.origin, job?.state, more.length], ['schedule', 'finished', 0]);
  await service.stop();
});
