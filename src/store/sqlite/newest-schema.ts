/** Which migrations of SQLite this code knows. */
import { fileURLToPath } from 'node:url';
import { listMigrations } from '../migrations.ts';

export const MIGRATIONS = fileURLToPath(new URL('./migrations/', import.meta.url));

/** The version of the tables that they lead to. */
export function newestSchema(): number {
  return listMigrations(MIGRATIONS).at(-1)?.number ?? 0;
}
