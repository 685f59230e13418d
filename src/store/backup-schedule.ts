/** Backs up an SQLite database at regular intervals, and keeps only the newest backups. */
import type { Logger } from '../observe/log.ts';
import { Chore } from '../std/chore.ts';
import type { Clock } from '../std/clock.ts';
import { keepNewest, listBackups } from './backup-files.ts';
import { createBackup } from './open.ts';
import type { Store } from './store.ts';

/**
 * How often the schedule checks whether a backup is due. It reads the time of the newest scheduled backup from its
 * name.
 */
const CHECK_MS = 60_000;
/** How long the schedule waits after a failed backup before it tries again. */
const RETRY_MS = 15 * 60_000;
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * @param options.keep number of verified scheduled backups to keep; backups made by commands and migrations are never
 *   deleted
 */
export function backupSchedule(options: {
  databaseUrl: string;
  copyTo: Store['copyTo'];
  directory: string;
  everyMs: number;
  keep: number;
  clock: Clock;
  log: Logger;
  random: () => number;
}): Chore {
  const { databaseUrl, copyTo, directory, everyMs, keep, clock, log, random } = options;
  let triedAt = NEVER;
  return new Chore({
    everyMs: CHECK_MS,
    random,
    async work(signal) {
      const now = clock();
      // The difference is absolute, so that setting the clock back does not suspend backups for days.
      const isWithin = (thenMs: number, ms: number) => Math.abs(now - thenMs) < ms;
      if (isWithin(triedAt, Math.min(everyMs, RETRY_MS))) return;
      triedAt = now;
      const newest = listBackups(directory).find(({ origin }) => origin === 'scheduled');
      if (newest !== undefined && isWithin(newest.createdAt, everyMs)) {
        triedAt = NEVER;
        return;
      }
      const fromMs = performance.now();
      try {
        const made = await createBackup(databaseUrl, { directory, now, origin: 'scheduled', signal, copyTo });
        const { file, bytes, mistakes } = made;
        if (mistakes.length > 0) log.error({ file, mistakes }, 'backup.damaged');
        const removed = keepNewest(directory, keep);
        log.info({ file, bytes, removed, tookMs: Math.round(performance.now() - fromMs) }, 'backup.created');
      } catch (error) {
        // If the server is stopping, this is not a failure, because the backup is made after the next start.
        if (!signal.aborted) throw error;
      }
    },
    failed: (err) => log.error({ err, directory }, 'backup.failed'),
  });
}
