/** Checks of the machine: versions, memory, the clock, free space and the kind of file system. */
import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { bytesWords, countWords, durationWords } from '../std/amounts.ts';
import { toIso } from '../std/clock.ts';
import { isPostgres } from '../store/database-url.ts';
import { everyRow } from '../store/page.ts';
import { type Check, error, ofSettings, ofStore, ok, type Result, skipped, warning } from './check.ts';

/** The memory that the service and its threads use under load. */
const SERVICE_BYTES = 300_000_000;
/** Smaller differences between the clocks may come from the duration of the query, and do no harm. */
const CLOCK_MS = 2_000;

export const versions: Check = {
  group: 'machine',
  name: 'versions',
  // `bin/flowhook.js` rejects an older Node.
  run: () => ok(`Node ${process.versions.node} with SQLite ${process.versions.sqlite}`),
};

export const memory: Check = ofStore('machine', 'memory', async (store, settings) => {
  const limits: number[] = [];
  for await (const { id: teamId } of everyRow(store.teams.list, {})) {
    for await (const { definition } of everyRow(store.workflows.list, { teamId })) {
      if (definition.source.type !== 'push') limits.push(definition.limits.memoryBytes);
    }
  }
  const runsBytes = limits
    .sort((a, b) => b - a)
    .slice(0, settings.maxRunningJobs)
    .reduce((sum, one) => sum + one, 0);
  // If there is no limit, `constrainedMemory` returns zero, or more than the total memory.
  const given = process.constrainedMemory();
  const limitBytes = given > 0 ? Math.min(given, totalmem()) : totalmem();
  return memoryResult({ runsBytes, limitBytes, isLimited: limitBytes < totalmem() });
});

/** @param found.runsBytes the sum of the memory limits of the largest workflows that can run at the same time */
export function memoryResult(found: { runsBytes: number; limitBytes: number; isLimited: boolean }): Result {
  const { runsBytes, limitBytes, isLimited } = found;
  const place = isLimited ? 'limit of this container or service' : 'memory of this machine';
  const need = runsBytes + SERVICE_BYTES;
  const what = `Runs may use ${bytesWords(runsBytes)} in total and the service about ${bytesWords(SERVICE_BYTES)}, of ${bytesWords(limitBytes)} (${place})`;
  if (need <= limitBytes) return ok(what);
  return warning({
    what,
    why: 'If the largest workflows run at the same time, the kernel may kill processes, including the service',
    fix: 'Lower FLOWHOOK_MAX_RUNNING_JOBS or `limits.memory` of workflows, or add memory',
  });
}

export const clock: Check = ofStore('machine', 'clock', (store, settings, subject) => {
  if (!isPostgres(settings.databaseUrl))
    return skipped('Not compared', 'The database uses the clock of this machine');
  const aheadMs = subject.clock() - store.now();
  if (Math.abs(aheadMs) <= CLOCK_MS)
    return ok(`The clocks of this machine and the database agree (${toIso(store.now())})`);
  const away = durationWords(Math.abs(aheadMs));
  return warning({
    what: `This machine's clock is ${away} ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of the database`,
    why: "Jobs and deliveries use the database's clock; logs and certificates use this machine's",
    fix: 'Synchronize both clocks with NTP (chrony, systemd-timesyncd)',
  });
});

const LITTLE_BYTES = 1_000_000_000;
/** If less space than this is free, the write-ahead log and cached response bodies may not fit. */
const NO_BYTES = 100_000_000;
const FEW_FILES = 1_000;

/** Remote file systems by their magic number on Linux (`man 2 statfs`). */
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
    if (isPostgres(settings.databaseUrl))
      return skipped('Not checked', 'PostgreSQL has its own backup tools');
    const { store } = subject.database;
    // A backup is a copy of the database without the space of deleted data, so a backup is not larger than the
    // database.
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

/** @param found.freeFiles the number of free inodes; null if the file system has no fixed number of inodes */
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
      why: 'Without free inodes no file can be created, even if there is free space',
      fix: 'Delete unneeded files there, or recreate the file system with more inodes',
    });
  }
  if (freeBytes < NO_BYTES) {
    return error({
      what,
      why: 'When the disk is full, the service rejects writes. Acknowledged data is kept',
      fix: 'Delete old backups or other files, or use a larger disk',
    });
  }
  if (freeBytes >= Math.max(LITTLE_BYTES, needed)) return ok(what);
  return warning({
    what,
    why:
      freeBytes < needed
        ? `The next backup needs up to ${bytesWords(needed)}, and will fail`
        : 'A migration copies the database first, and the write-ahead log of a busy hour takes a few hundred MB',
    fix: 'Free up space, or keep less data: FLOWHOOK_BACKUP_KEEP, FLOWHOOK_REPRESENTATION_CACHE_MB, FLOWHOOK_KEEP_EVENTS_DAYS',
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
      why: "SQLite's locks and shared memory are unreliable on it, so the database may be corrupted",
      fix: 'Move the data directory to a local disk (FLOWHOOK_DATA), and use this file system for backups',
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

/** Returns the nearest existing directory. A directory created below it will be on the same disk. */
export function existing(path: string): string {
  let found = path;
  while (!existsSync(found) && dirname(found) !== found) found = dirname(found);
  return found;
}
