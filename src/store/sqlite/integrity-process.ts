/** The process that checks a database file for damage for `integrity.ts`. */
import { constants, setPriority } from 'node:os';
import { damageIn, inspect } from './backup-check.ts';
import { isOutside, withDatabase } from './database.ts';

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
  try {
    return withDatabase(path, { readOnly: true }, (db) => damageIn(db, 'quick_check'));
  } catch (error) {
    if (!isOutside(error)) throw error;
    return [(error as Error).message];
  }
}
