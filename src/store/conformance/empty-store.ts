/** An empty SQLite store for tests elsewhere, in a temporary directory that is removed with the test. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';

/** @param t a test; hooks that it registers after this call run after the store is closed */
export async function openEmptyStore(
  t: Pick<TestContext, 'after'>,
  options: { clock?: Clock } = {},
): Promise<{ store: Store; databaseUrl: string; directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-store-'));
  const databaseUrl = `sqlite:${join(directory, 'flowhook.db')}`;
  const store = await openStore(databaseUrl, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
    ...options,
  });
  t.after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  return { store, databaseUrl, directory };
}
