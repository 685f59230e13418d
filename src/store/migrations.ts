/**
 * Migrations: numbered files in `migrations/`, each written once for all databases and rendered for one.
 *
 * - The type of a column is a token of `TYPES`, such as `{time}`.
 * - A line that ends in `-- only sqlite` is for SQLite alone, and so are those below a line that says nothing else, until
 *   the next such line or `-- both`. Types are the database's own there.
 *
 * A database counts a file in which nothing is for it as one of its versions all the same.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nearest } from '../std/nearest.ts';

export const DRIVERS = ['sqlite', 'postgres'] as const;
export type Driver = (typeof DRIVERS)[number];

export const MIGRATIONS = fileURLToPath(new URL('./migrations/', import.meta.url));

const TYPES: Readonly<Record<string, Readonly<Record<Driver, string>>>> = {
  /** Compared and sorted by bytes. */
  text: { sqlite: 'text', postgres: 'text collate "C"' },
  /** In migrations up to 18 alone: PostgreSQL sorts it as the database was told, and joins it with `{text}` slowly. */
  old_text: { sqlite: 'text', postgres: 'text' },
  /** Epoch milliseconds. */
  time: { sqlite: 'integer', postgres: 'bigint' },
  /** Up to 32,767. */
  smallint: { sqlite: 'integer', postgres: 'smallint' },
  /** Up to 2,147,483,647. */
  integer: { sqlite: 'integer', postgres: 'integer' },
  bigint: { sqlite: 'integer', postgres: 'bigint' },
};

export interface Migration {
  number: number;
  name: string;
  /** What the database runs. */
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

/**
 * The migrations in a directory, `0001_name.sql` and so on, in order. Throws an Error with a sentence when one of them
 * names a token or a database that does not exist, or for all databases the type of one.
 */
export function listMigrations(driver: Driver, directory = MIGRATIONS): Migration[] {
  return namesIn(directory).map((name) => ({
    number: numberOf(name),
    name,
    sql: render({ name, text: readFileSync(join(directory, name), 'utf8') }, driver),
  }));
}

/** What is pending on a database that has a schema version. */
export function schemaState(driver: Driver, found: number, directory?: string): SchemaState {
  const migrations = listMigrations(driver, directory);
  return {
    found,
    newest: migrations.at(-1)?.number ?? 0,
    waiting: migrations.filter(({ number }) => number > found).map(({ name }) => name),
  };
}

function namesIn(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => /^\d{4}_.*\.sql$/.test(name))
    .sort();
}

function numberOf(name: string): number {
  return Number(name.slice(0, 4));
}

/** The version of the schema after all migrations, of every database. */
export const NEWEST_SCHEMA = numberOf(namesIn(MIGRATIONS).at(-1) ?? '0');

function render({ name, text }: { name: string; text: string }, driver: Driver): string {
  let section: string | undefined;
  const lines = text.split('\n').filter((line) => {
    const only = /-- only (\w+)\s*$/.exec(line)?.[1];
    if (only !== undefined) refuseUnknown(only, DRIVERS, name);
    if (/^\s*-- (both|only \w+)\s*$/.test(line)) section = only;
    const meant = only ?? section;
    if (meant === undefined) refusePlainType(line, name);
    return meant === undefined || meant === driver;
  });
  return lines.join('\n').replaceAll(/\{(\w+)\}/g, (_, token: string) => {
    refuseUnknown(token, Object.keys(TYPES), name);
    return TYPES[token]?.[driver] ?? '';
  });
}

/** Types that are not the same to all databases, or unknown to one. */
const PLAIN_TYPE = /\b(text|varchar|(big|small)?int|integer|real|numeric|boolean|bytea|blob|jsonb?)\b/i;

function refusePlainType(line: string, file: string): void {
  const found = PLAIN_TYPE.exec(line.replaceAll(/'[^']*'|--.*|\{\w+\}/g, ''))?.[0];
  if (found === undefined) return;
  const names = Object.keys(TYPES).map((token) => `{${token}}`);
  throw new Error(`${file}: "${found}" is a type of one database. For all there are: ${names.join(', ')}`);
}

function refuseUnknown(written: string, names: readonly string[], file: string): void {
  if (names.includes(written)) return;
  const meant = nearest(written, names);
  const advice = meant === undefined ? `There are: ${names.join(', ')}` : `Did you mean "${meant}"?`;
  throw new Error(`${file}: nothing is called "${written}". ${advice}`);
}
