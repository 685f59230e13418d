/**
 * Migrations are numbered files in `migrations/`. Each file is written once for both databases and rendered for one of
 * them.
 *
 * - The type of a column is a token from `TYPES`, such as `{time}`.
 * - A line that ends in `-- only sqlite` applies only to SQLite. If a line consists only of this comment, the
 *   comment applies to all lines below it, up to the next such line or `-- both`. Lines for only one database use that
 *   database's own types.
 *
 * A file that has no statements for a database still counts as one of its schema versions.
 */
import { join } from 'node:path';
import { nearest } from '../std/nearest.ts';
import { listOwnFiles, ROOT, readOwnFile } from '../std/own-files.ts';

export const DRIVERS = ['sqlite', 'postgres'] as const;
export type Driver = (typeof DRIVERS)[number];

export const MIGRATIONS = join(ROOT, 'src/store/migrations/');

const TYPES: Readonly<Record<string, Readonly<Record<Driver, string>>>> = {
  /** Compared and sorted by bytes. */
  text: { sqlite: 'text', postgres: 'text collate "C"' },
  /**
   * Allowed only in migrations up to number 18, because PostgreSQL sorts this type by the database's locale, and is
   * slow at joining it with `{text}`.
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
  /**
   * The schema version of the database, which is the number of the last migration that ran; 0 if there are no tables.
   */
  found: number;
  /** The newest version that this code knows. */
  newest: number;
  /** The file names of the pending migrations, in order. */
  waiting: string[];
}

/**
 * Lists the migrations in a directory, `0001_name.sql` and so on, in order. Throws an Error if a migration names an
 * unknown token or database, or if a line for both databases uses a type of only one of them.
 */
export function listMigrations(driver: Driver, directory = MIGRATIONS): Migration[] {
  return namesIn(directory).map((name) => ({
    number: numberOf(name),
    name,
    sql: render({ name, text: readOwnFile(join(directory, name)) }, driver),
  }));
}

/**
 * Returns the single statements of a migration, some with comments. A semicolon in a text, a comment or a body between
 * `$$` ends no statement.
 */
export function statementsOf(sql: string): string[] {
  const found = sql.match(/(?:'[^']*'|\$\$[\s\S]*?\$\$|--.*|[^;])+/g) ?? [];
  return found.filter((statement) => statement.replaceAll(/--.*/g, '').trim() !== '');
}

/** Returns the schema state of a database whose schema version is `found`. */
export function schemaState(found: number, directory?: string): SchemaState {
  return {
    found,
    newest: newestSchema(directory),
    waiting: namesIn(directory ?? MIGRATIONS).filter((name) => numberOf(name) > found),
  };
}

function namesIn(directory: string): string[] {
  return listOwnFiles(directory)
    .filter((name) => /^\d{4}_.*\.sql$/.test(name))
    .sort();
}

function numberOf(name: string): number {
  return Number(name.slice(0, 4));
}

/** The schema version of this code. It is kept, because an upgrade may replace the files while a server runs. */
let ofThisCode: number | undefined;

/** Returns the schema version after all migrations. Reads only the names of the files. */
export function newestSchema(directory = MIGRATIONS): number {
  if (directory === MIGRATIONS && ofThisCode !== undefined) return ofThisCode;
  const newest = numberOf(namesIn(directory).at(-1) ?? '0');
  if (directory === MIGRATIONS) ofThisCode = newest;
  return newest;
}

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

/** Types that differ between the databases, or that only one of them has. */
const PLAIN_TYPE = /\b(text|varchar|(big|small)?int|integer|real|numeric|boolean|bytea|blob|jsonb?)\b/i;

function refusePlainType(line: string, file: string): void {
  const found = PLAIN_TYPE.exec(line.replaceAll(/'[^']*'|--.*|\{\w+\}/g, ''))?.[0];
  if (found === undefined) return;
  const names = Object.keys(TYPES).map((token) => `{${token}}`);
  throw new Error(`${file}: "${found}" is a type of only one database. Use one of: ${names.join(', ')}`);
}

function refuseUnknown(written: string, names: readonly string[], file: string): void {
  if (names.includes(written)) return;
  const meant = nearest(written, names);
  const advice = meant === undefined ? `Known names: ${names.join(', ')}` : `Did you mean "${meant}"?`;
  throw new Error(`${file}: unknown name "${written}". ${advice}`);
}
