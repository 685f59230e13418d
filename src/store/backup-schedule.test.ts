/** Backups on a schedule: when one is made, which stay, and what happens when it cannot be made. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Logger, silentLogger } from '../observe/log.ts';
import type { Chore } from '../std/chore.ts';
import { keepNewest, listBackups, readManifest, writeManifest } from './backup-files.ts';
import { backupSchedule } from './backup-schedule.ts';
import { createBackup, openStore } from './open.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Scheduled {
  chore: Chore;
  directory: string;
  databaseUrl: string;
  /** Moves the clock to so long after the first look, and looks. */
  lookAfter(ms: number): Promise<void>;
  names(): string[];
  failures: unknown[];
}

async function scheduled(t: TestContext, keep = 2): Promise<Scheduled> {
  const root = await mkdtemp(join(tmpdir(), 'flowhook-schedule-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const databaseUrl = `sqlite:${join(root, 'flowhook.db')}`;
  const store = await openStore(databaseUrl, { publicUrl: () => '', log: silentLogger, synchronous: 'OFF' });
  t.after(() => store.close());
  const failures: unknown[] = [];
  const log = Object.assign(Object.create(silentLogger) as Logger, {
    error: (fields: { err: unknown }) => failures.push(fields.err),
  });
  const from = Date.UTC(2026, 0, 1);
  let now = from;
  const directory = join(root, 'backups');
  const options = { databaseUrl, directory, everyMs: DAY_MS, keep, clock: () => now, log, random: () => 0 };
  const chore = backupSchedule(options);
  return {
    chore,
    directory,
    databaseUrl,
    async lookAfter(ms) {
      now = from + ms;
      await chore.tick();
    },
    names: () => listBackups(directory).map(({ name }) => name),
    failures,
  };
}

test('one is made at once, and then when the last one is old enough', async (t) => {
  const { lookAfter, names } = await scheduled(t);
  await lookAfter(0);
  assert.equal(names().length, 1);
  assert.match(names()[0] ?? '', /^flowhook-2026-01-01T000000Z-v\d+-scheduled\.db$/);
  await lookAfter(DAY_MS - 1);
  assert.equal(names().length, 1);
  await lookAfter(DAY_MS);
  assert.equal(names().length, 2);
});

test('the newest stay, and whatever a command or a migration has made', async (t) => {
  const { lookAfter, names, directory, databaseUrl } = await scheduled(t);
  for (const origin of ['command', 'migration'] as const) {
    await createBackup(databaseUrl, { directory, now: Date.UTC(2025, 0, 1), origin });
  }
  for (let day = 0; day < 4; day += 1) await lookAfter(day * DAY_MS);
  assert.deepEqual(
    names().map((name) => name.replace(/-v\d+/, '')),
    [
      'flowhook-2026-01-04T000000Z-scheduled.db',
      'flowhook-2026-01-03T000000Z-scheduled.db',
      'flowhook-2025-01-01T000000Z.db',
      'flowhook-2025-01-01T000000Z-migration.db',
    ],
  );
});

test('one that is not whole takes no place of one that is', async (t) => {
  const { lookAfter, names, directory } = await scheduled(t, 10);
  for (let day = 0; day < 4; day += 1) await lookAfter(day * DAY_MS);
  const [newest] = listBackups(directory);
  const manifest = readManifest(newest?.file ?? '');
  assert.ok(newest !== undefined && manifest !== undefined);
  writeManifest(newest.file, { ...manifest, verifiedAt: null });
  assert.equal(keepNewest(directory, 2).length, 1);
  assert.deepEqual(
    names().map((name) => name.slice(9, 19)),
    ['2026-01-04', '2026-01-03', '2026-01-02'],
  );
  assert.deepEqual(keepNewest(directory, 4), [], 'there are not so many');
});

test('one that fails is told, and tried again after a while', async (t) => {
  const { lookAfter, names, directory, failures } = await scheduled(t);
  await writeFile(directory, 'in the way');
  await lookAfter(0);
  await lookAfter(60_000);
  assert.equal(failures.length, 1);
  await rm(directory);
  await lookAfter(15 * 60_000 - 1);
  assert.deepEqual([failures.length, names().length], [1, 0]);
  await lookAfter(15 * 60_000);
  assert.deepEqual([failures.length, names().length], [1, 1]);
});

test('stopping ends one that is being made, which is no failure', async (t) => {
  const { chore, lookAfter, names, failures } = await scheduled(t);
  chore.start();
  const looked = lookAfter(0);
  await chore.stop();
  await looked;
  assert.deepEqual([names(), failures], [[], []]);
});
