/** The migrations that this code has for SQLite. */
import { fileURLToPath } from 'node:url';
import { listMigrations } from '../migrations.ts';

export const MIGRATIONS = fileURLToPath(new URL('./migrations/', import.meta.url));

/** The schema version after the last of them. */
export function newestSchema(): number {
  return listMigrations(MIGRATIONS).at(-1)?.number ?? 0;
}
