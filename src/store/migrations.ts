/**
 * Migrations: numbered files in `migrations/`, each written once for all databases and rendered for one.
 *
 * - The type of a column is a token of `TYPES`, such as `{time}`.
 * - A line that ends in `-- only sqlite` is only for SQLite. A line that consists of this comment applies to all lines
 *   below it, up to the next such line or `-- both`; there, the database's own types are used.
 *
 * A file without statements for a database still counts as one of its versions.
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
  /**
   * Allowed only in migrations up to 18: PostgreSQL sorts this type by the database's locale, and joins it slowly with
   * `{text}`.
   */
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
  /** The rendered statements. */
  sql: string;
}

export interface SchemaState {
  /** The schema version of the database: the number of the last migration run; 0 if there are no tables. */
  found: number;
  /** The newest version that this code knows. */
  newest: number;
  /** The file names of the pending migrations, in order. */
  waiting: string[];
}

/**
 * The migrations in a directory, `0001_name.sql` and so on, in order. Throws an Error if one of them names an unknown
 * token or database, or uses a type of one database in a line for both.
 */
export function listMigrations(driver: Driver, directory = MIGRATIONS): Migration[] {
  return namesIn(directory).map((name) => ({
    number: numberOf(name),
    name,
    sql: render({ name, text: readFileSync(join(directory, name), 'utf8') }, driver),
  }));
}

/** The pending migrations of a database with the schema version `found`. */
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

/** The schema version after all migrations. */
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

/** Types that differ between the databases, or that one of them does not have. */
const PLAIN_TYPE = /\b(text|varchar|(big|small)?int|integer|real|numeric|boolean|bytea|blob|jsonb?)\b/i;

function refusePlainType(line: string, file: string): void {
  const found = PLAIN_TYPE.exec(line.replaceAll(/'[^']*'|--.*|\{\w+\}/g, ''))?.[0];
  if (found === undefined) return;
  const names = Object.keys(TYPES).map((token) => `{${token}}`);
  throw new Error(`${file}: "${found}" is a type of one database. Types for both: ${names.join(', ')}`);
}

function refuseUnknown(written: string, names: readonly string[], file: string): void {
  if (names.includes(written)) return;
  const meant = nearest(written, names);
  const advice = meant === undefined ? `Known names: ${names.join(', ')}` : `Did you mean "${meant}"?`;
  throw new Error(`${file}: unknown name "${written}". ${advice}`);
}
