/** Migrations, the same for every database: numbered .sql files, and how many of them a database has had. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Migration {
  number: number;
  name: string;
  sql: string;
}

/** How far the migrations of a database have come. */
export interface SchemaState {
  /** Its schema version: the number of the last migration run; 0 when there are no tables. */
  found: number;
  /** The newest version that this code knows. */
  newest: number;
  /** The file names of the pending migrations, in order. */
  waiting: string[];
}

/** The migrations in a directory, `0001_name.sql` and so on, in order. */
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
