/** Scheduled backups: when they are made, which are kept, and failures. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Logger, silentLogger } from '../observe/log.ts';
import type { Chore } from '../std/chore.ts';
import { type BackupOrigin, backupName, keepNewest, listBackups, writeManifest } from './backup-files.ts';
import { backupSchedule } from './backup-schedule.ts';
import { openStore } from './open.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FROM = Date.UTC(2026, 0, 1);

/** Creates the parts of an old backup that are read: its name, size and manifest. */
function plant(
  directory: string,
  { createdAt, origin, isWhole = true }: { createdAt: number; origin: BackupOrigin; isWhole?: boolean },
): void {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, backupName({ createdAt, origin, schema: 1 }));
  writeFileSync(file, 'x');
  const time = new Date(createdAt).toISOString();
  const counts = { teams: 0, workflows: 0, jobs: 0, records: 0, events: 0, webhooks: 0, deliveries: 0 };
  writeManifest(file, {
    format: 1,
    createdAt: time,
    origin,
    schema: 1,
    bytes: 1,
    sha256: '',
    encryptionKey: null,
    counts,
    verifiedAt: isWhole ? time : null,
  });
}

async function emptyDirectory(t: TestContext): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'flowhook-schedule-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  return root;
}

interface Scheduled {
  chore: Chore;
  directory: string;
  /** Sets the clock to `ms` after the start, and runs the chore. */
  runAfter(ms: number): Promise<void>;
  names(): string[];
  failures: unknown[];
}

async function scheduled(t: TestContext): Promise<Scheduled> {
  const root = await emptyDirectory(t);
  const databaseUrl = `sqlite:${join(root, 'flowhook.db')}`;
  const store = await openStore(databaseUrl, { publicUrl: () => '', log: silentLogger, synchronous: 'OFF' });
  t.after(() => store.close());
  const failures: unknown[] = [];
  const log = Object.assign(Object.create(silentLogger) as Logger, {
    error: (fields: { err: unknown }) => failures.push(fields.err),
  });
  let now = FROM;
  const directory = join(root, 'backups');
  const options = {
    databaseUrl,
    copyTo: store.copyTo,
    directory,
    everyMs: DAY_MS,
    keep: 2,
    clock: () => now,
    log,
    random: () => 0,
  };
  const chore = backupSchedule(options);
  return {
    chore,
    directory,
    async runAfter(ms) {
      now = FROM + ms;
      await chore.tick();
    },
    names: () => listBackups(directory).map(({ name }) => name),
    failures,
  };
}

test('makes a backup immediately, and the next when the last one is old enough', async (t) => {
  const { runAfter, names } = await scheduled(t);
  await runAfter(0);
  assert.equal(names().length, 1);
  assert.match(names()[0] ?? '', /^flowhook-2026-01-01T000000Z-v\d+-scheduled\.db$/);
  await runAfter(DAY_MS - 1);
  assert.equal(names().length, 1);
  await runAfter(DAY_MS);
  assert.equal(names().length, 2);
});

test('keeps the newest scheduled backups, and all backups of commands and migrations', async (t) => {
  const { runAfter, names, directory } = await scheduled(t);
  for (const origin of ['command', 'migration'] as const) {
    plant(directory, { createdAt: Date.UTC(2025, 0, 1), origin });
  }
  for (let day = 0; day < 3; day += 1)
    plant(directory, { createdAt: FROM + day * DAY_MS, origin: 'scheduled' });
  await runAfter(3 * DAY_MS);
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

test('an unverified backup does not displace a verified one', async (t) => {
  const directory = await emptyDirectory(t);
  for (let day = 0; day < 4; day += 1) {
    plant(directory, { createdAt: FROM + day * DAY_MS, origin: 'scheduled', isWhole: day < 3 });
  }
  assert.equal(keepNewest(directory, 2).length, 1);
  assert.deepEqual(
    listBackups(directory).map(({ name }) => name.slice(9, 19)),
    ['2026-01-04', '2026-01-03', '2026-01-02'],
  );
  assert.deepEqual(keepNewest(directory, 4), [], 'there are no more than 4');
});

test('logs a failed backup, and retries after 15 minutes', async (t) => {
  const { runAfter, names, directory, failures } = await scheduled(t);
  await writeFile(directory, 'in the way');
  await runAfter(0);
  await runAfter(60_000);
  assert.equal(failures.length, 1);
  await rm(directory);
  await runAfter(15 * 60_000 - 1);
  assert.deepEqual([failures.length, names().length], [1, 0]);
  await runAfter(15 * 60_000);
  assert.deepEqual([failures.length, names().length], [1, 1]);
});

test('stopping aborts the running backup, which is not logged as a failure', async (t) => {
  const { chore, runAfter, names, failures } = await scheduled(t);
  chore.start();
  const run = runAfter(0);
  await chore.stop();
  await run;
  assert.deepEqual([names(), failures], [[], []]);
});
