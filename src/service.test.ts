/** Starting and stopping the whole. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../test/support/service.ts';

test('a database whose encryption key is missing is refused, and no other key is made', async () => {
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

test('another encryption key is refused', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-service-'));
  await (await startService({ directory })).stop();
  const settings = { FLOWHOOK_ENCRYPTION_KEY: 'ab'.repeat(32) };
  await assert.rejects(startService({ directory, settings }), /does not fit this database/);
  await rm(directory, { recursive: true, force: true });
});

test('what fails to start leaves nothing running: the same directory can be started again', async () => {
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
