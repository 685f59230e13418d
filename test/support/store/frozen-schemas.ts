/** Frozen rows of each version of the tables, and digests of the migrations. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DRIVERS, type Driver, listMigrations } from '../../../src/store/migrations.ts';

export type Row = Record<string, unknown>;
/** Rows by table. */
export type Rows = Map<string, Row[]>;

export const FROZEN = join(import.meta.dirname, '../../fixtures', 'schemas');
/** The file with the SHA-256 of each released migration per database, by paths such as `sqlite/0001_initial.sql`. */
export const DIGESTS = join(FROZEN, 'migrations.json');

/** The settings of the service that wrote the rows, and placeholders for its URLs and its directory. */
export const LEFT = {
  encryptionKey: 'ab'.repeat(32),
  key: 'test-key-of-the-default-team',
  receiver: 'http://127.0.0.1:9',
  service: 'http://127.0.0.1:8080',
  directory: '/srv/flowhook',
} as const;

/** The current digests, as in `DIGESTS`. Comments, white space and statements for the other database do not count. */
export function digests(): Record<string, string> {
  const found: Record<string, string> = {};
  for (const driver of DRIVERS) {
    for (const { name, sql } of listMigrations(driver)) {
      const text = sql.replaceAll(/--.*/g, '').replaceAll(/\s+/g, ' ').trim();
      if (text !== '') found[`${driver}/${name}`] = createHash('sha256').update(text).digest('hex');
    }
  }
  return found;
}

export function fileOf(driver: Driver, version: number): string {
  return join(FROZEN, `${driver}-${String(version).padStart(4, '0')}.ndjson`);
}

/**
 * The rows of a version. A version that was released together with a later one has the rows of the later version.
 *
 * @param receiver the origin of the endpoints in the rows
 */
export function frozenRows(driver: Driver, version: number, receiver: string): Rows {
  const left = readdirSync(FROZEN)
    .filter((name) => name.startsWith(`${driver}-`))
    .map((name) => Number(name.slice(driver.length + 1, -'.ndjson'.length)))
    .filter((one) => one >= version);
  const rows: Rows = new Map();
  const text = readFileSync(fileOf(driver, Math.min(...left)), 'utf8').replaceAll(LEFT.receiver, receiver);
  for (const line of text.trim().split('\n')) {
    const { table, row } = JSON.parse(line) as { table: string; row: Row };
    rows.set(table, [...(rows.get(table) ?? []), row]);
  }
  return rows;
}
