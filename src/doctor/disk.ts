/** The disk: free space, kind of file system, and how long a durable write takes. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { bytesWords, countWords } from '../std/amounts.ts';
import { isPostgres } from '../store/database-url.ts';
import { type Check, error, ofSettings, ok, type Result, skipped, warning } from './check.ts';

const LITTLE_BYTES = 1_000_000_000;
/** Below this, the write-ahead log and cached response bodies no longer fit. */
const NO_BYTES = 100_000_000;
const FEW_FILES = 1_000;

const WRITES = 50;
const WRITE_BYTES = 4_096;
/** The limit of the measurement, however slow the disk is. */
const MEASURE_MS = 3_000;
/** Times of one durable write: a solid-state disk stays far below, a busy rotating one does not. */
const SLOW = { p50Ms: 20, p99Ms: 250 };

/** By Linux's magic number of the file system (`man 2 statfs`). */
const REMOTE: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'SMB',
  4266872130: 'SMB',
  16914839: 'a host share (9p)',
  1702057286: 'a FUSE file system',
};
const TMPFS = 0x01021994;
const OVERLAY = 0x794c7630;

export const rooms: readonly Check[] = [
  ofSettings('machine', 'disk-space-data', async (settings) =>
    room({ noun: 'the data directory', path: settings.dataDirectory, needed: 0 }),
  ),
  ofSettings('machine', 'disk-space-backups', async (settings, subject) => {
    if (isPostgres(settings.databaseUrl)) return skipped('Not checked', 'PostgreSQL is backed up elsewhere');
    const { store } = subject.database;
    // A backup is a copy without deleted data.
    const needed = settings.backupEveryMs === null ? 0 : (await store?.status.database())?.bytes;
    return room({ noun: 'backups', path: settings.backupDirectory, needed: needed ?? 0 });
  }),
  ofSettings('machine', 'disk-space-temporary', async () =>
    room({ noun: 'temporary files of runs', path: tmpdir(), needed: 0 }),
  ),
];

async function room(place: { noun: string; path: string; needed: number }): Promise<Result> {
  const { bavail, bsize, files, ffree } = await statfs(existing(place.path));
  return roomResult({ ...place, freeBytes: bavail * bsize, freeFiles: files > 0 ? ffree : null });
}

/** @param found.freeFiles free inodes; null for file systems without a fixed number */
export function roomResult(found: {
  noun: string;
  path: string;
  needed: number;
  freeBytes: number;
  freeFiles: number | null;
}): Result {
  const { noun, path, needed, freeBytes, freeFiles } = found;
  const what = `${bytesWords(freeBytes)} free for ${noun} (${path})`;
  if (freeFiles !== null && freeFiles < FEW_FILES) {
    return error({
      what: `Only ${countWords(freeFiles, 'free inode')} for ${noun} (${path})`,
      why: 'Without free inodes no file can be created, whatever space is left',
      fix: 'Delete unneeded files there, or recreate the file system with more inodes',
    });
  }
  if (freeBytes < NO_BYTES) {
    return error({
      what,
      why: 'Writes are refused when the disk is full; acknowledged ones are kept',
      fix: 'Delete old backups or other files, or use a larger disk',
    });
  }
  if (freeBytes >= Math.max(LITTLE_BYTES, needed)) return ok(what);
  return warning({
    what,
    why:
      freeBytes < needed
        ? `The next backup needs up to ${bytesWords(needed)}, and will be refused`
        : 'Migrations copy the database first, and the log of a busy hour takes a few hundred MB',
    fix: 'Free up space, or keep less: FLOWHOOK_BACKUP_KEEP, FLOWHOOK_REPRESENTATION_CACHE_MB, FLOWHOOK_KEEP_EVENTS_DAYS',
  });
}

export const fileSystem: Check = ofSettings('machine', 'file-system', async ({ dataDirectory }) => {
  const { type } = await statfs(existing(dataDirectory));
  return fileSystemResult(type, dataDirectory);
});

export function fileSystemResult(type: number, path: string): Result {
  const remote = REMOTE[type];
  if (remote !== undefined) {
    return warning({
      what: `The data directory ${path} is on ${remote}`,
      why: "SQLite's locks and shared memory are unreliable there, so the database may be corrupted",
      fix: 'Move the data directory to a local disk (FLOWHOOK_DATA), and use this one for backups',
    });
  }
  if (type === TMPFS) {
    return warning({
      what: `The data directory ${path} is in memory (tmpfs)`,
      why: 'All data is lost when the machine or container restarts',
      fix: 'Point FLOWHOOK_DATA at a disk or volume',
    });
  }
  if (type === OVERLAY) {
    return warning({
      what: `The data directory ${path} is in a container layer (overlayfs)`,
      why: 'All data is lost when the container is removed, or recreated for an upgrade',
      fix: 'Mount a volume there, or point FLOWHOOK_DATA at one',
    });
  }
  return ok(`The data directory ${path} appears to be on a local disk`);
}

export const diskWrites: Check = ofSettings('machine', 'disk-writes', async (settings, _subject, signal) => {
  if (isPostgres(settings.databaseUrl)) {
    return skipped('Not measured', 'Durable data is on the disk of PostgreSQL');
  }
  const { dataDirectory } = settings;
  if (!existsSync(dataDirectory)) return skipped('Not measured', 'There is no data directory yet');
  try {
    return diskWritesResult(await measureWrites(dataDirectory, signal));
  } catch (cause) {
    return error({
      what: `Cannot write to ${dataDirectory}: ${(cause as Error).message}`,
      why: 'Nothing can be queued, run or delivered',
      fix: 'Free up space there, or give this user write access',
    });
  }
});

/** How long each of some small writes took to become durable, in milliseconds. */
async function measureWrites(directory: string, signal: AbortSignal): Promise<number[]> {
  const path = join(directory, `.doctor-${randomUUID()}`);
  const file = await open(path, 'wx', 0o600);
  try {
    const block = Buffer.alloc(WRITE_BYTES, 1);
    const until = performance.now() + MEASURE_MS;
    const took: number[] = [];
    while (took.length < WRITES && performance.now() < until && !signal.aborted) {
      const from = performance.now();
      await file.write(block, 0, block.length, took.length * WRITE_BYTES);
      await file.datasync();
      took.push(performance.now() - from);
    }
    return took;
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}

/** @param took at least one time, in milliseconds */
export function diskWritesResult(took: readonly number[]): Result {
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const [p50Ms, p99Ms] = [at(0.5), at(0.99)];
  const shown = (ms: number) => `${ms < 10 ? ms.toFixed(2) : Math.round(ms)} ms`;
  const what = `A durable write takes ${shown(p50Ms)} (median), ${shown(p99Ms)} (99th percentile of ${took.length})`;
  if (p50Ms <= SLOW.p50Ms && p99Ms <= SLOW.p99Ms) return ok(what);
  return warning({
    what,
    why: 'Every response to a write request waits for one, shared by all concurrent requests',
    fix: 'Use a local SSD, and check whether something else keeps this disk busy',
  });
}

/** The nearest existing directory: a new one below it will be on the same disk. */
export function existing(path: string): string {
  let found = path;
  while (!existsSync(found) && dirname(found) !== found) found = dirname(found);
  return found;
}
