/** Numbered .sql files: the same for every database. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Migration {
  number: number;
  name: string;
  sql: string;
}

/** The migrations of a directory, `0001_name.sql` and so on, in their order. */
export function listMigrations(directory: string): Migration[] {
  return readdirSync(directory)
    .filter((name) => /^\d{4}_.*\.sql$/.test(name))
    .sort()
    .map((name) => ({
      number: Number(name.slice(0, 4)),
      name,
      sql: readFileSync(join(directory, name), 'utf8'),
    }));
}
