/** The process that checks a database file for damage for `integrity.ts`. */
import { constants, setPriority } from 'node:os';
import { inspect } from './backup-check.ts';
import { Database, isOutside } from './database.ts';

export interface IntegrityTask {
  path: string;
  /** Whether to compare indexes with their tables, and versions with their records, as well. */
  full: boolean;
}

process.once('message', (task: IntegrityTask) => {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  process.send?.(mistakesOf(task), () => process.disconnect?.());
});

function mistakesOf({ path, full }: IntegrityTask): string[] {
  if (full) return inspect(path).mistakes;
  let db: Database | undefined;
  try {
    db = new Database(path, { readOnly: true });
    return db
      .all<{ quick_check: string }>('pragma quick_check(3)')
      .map((row) => row.quick_check.replaceAll('\n', ' '))
      .filter((sentence) => sentence !== 'ok');
  } catch (error) {
    if (!isOutside(error)) throw error;
    return [(error as Error).message];
  } finally {
    db?.close();
  }
}
