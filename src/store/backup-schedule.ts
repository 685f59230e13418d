/** Makes a backup of an SQLite database every so often, and keeps the newest. */
import type { Logger } from '../observe/log.ts';
import { Chore } from '../std/chore.ts';
import type { Clock } from '../std/clock.ts';
import { keepNewest, listBackups } from './backup-files.ts';
import { createBackup } from './open.ts';

/** How often it is looked whether one is due: the files themselves say when the last one was made. */
const LOOK_MS = 60_000;
/** After one that failed. */
const AGAIN_MS = 15 * 60_000;
const NEVER = Number.NEGATIVE_INFINITY;

/** @param options.keep how many are kept that are known to be whole; those of commands and migrations stay */
export function backupSchedule(options: {
  databaseUrl: string;
  directory: string;
  everyMs: number;
  keep: number;
  clock: Clock;
  log: Logger;
  random: () => number;
}): Chore {
  const { databaseUrl, directory, everyMs, keep, clock, log, random } = options;
  let triedAt = NEVER;
  return new Chore({
    everyMs: LOOK_MS,
    random,
    async work(signal) {
      const now = clock();
      // A clock that was put back must not leave days without one.
      const isWithin = (thenMs: number, ms: number) => Math.abs(now - thenMs) < ms;
      if (isWithin(triedAt, Math.min(everyMs, AGAIN_MS))) return;
      triedAt = now;
      const newest = listBackups(directory).find(({ origin }) => origin === 'scheduled');
      if (newest !== undefined && isWithin(newest.createdAt, everyMs)) {
        triedAt = NEVER;
        return;
      }
      const fromMs = performance.now();
      try {
        const made = await createBackup(databaseUrl, { directory, now, origin: 'scheduled', signal });
        const { file, bytes, mistakes } = made;
        if (mistakes.length > 0) log.error({ file, mistakes }, 'backup.damaged');
        const removed = keepNewest(directory, keep);
        log.info({ file, bytes, removed, tookMs: Math.round(performance.now() - fromMs) }, 'backup.created');
      } catch (error) {
        // Stopping is no failure, and the next start makes it.
        if (!signal.aborted) throw error;
      }
    },
    failed: (err) => log.error({ err, directory }, 'backup.failed'),
  });
}
