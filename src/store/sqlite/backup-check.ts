/** Checks a database file that nobody writes to: reads all of it, counts its rows and reports what is wrong. */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { Inspection, VerifiedBackup } from '../backup.ts';
import { readManifest } from '../backup-files.ts';
import { CONTENTS, type Contents, inspectionOf, unreadable, VERSIONS } from '../inspection.ts';
import { type Database, isOutside, schemaVersion, withDatabase } from './database.ts';

const TABLES = ['instance', 'version', 'team', 'workflow', 'job', 'record', 'event', 'webhook', 'delivery'];
const CHUNK_BYTES = 1_048_576;

/**
 * Checks a backup: its bytes against the manifest beside it, then as `inspect` does. Changes nothing.
 *
 * @param copy of it, which is read in its place
 */
export function verifyFile(file: string, copy = file): VerifiedBackup {
  const manifest = readManifest(file);
  const { size: bytes } = statSync(copy);
  const inspection = inspect(copy);
  const checksumMatches =
    manifest === undefined ? null : manifest.bytes === bytes && manifest.sha256 === sha256Of(copy);
  if (checksumMatches === false) {
    inspection.mistakes.unshift(
      `The file is not the one that was made: it has ${bytes} bytes and another checksum than its manifest`,
    );
  }
  return { file, bytes, checksumMatches, ...inspection };
}

/** Checks every page, index and table of a database file. Damage is reported, not thrown. */
export function inspect(file: string): Inspection {
  let schema = 0;
  try {
    return withDatabase(nameToRead(file), { readOnly: true }, (db) => {
      schema = schemaVersion(db);
      return contentsOf(db, schema);
    });
  } catch (error) {
    if (!isOutside(error)) throw error;
    return unreadable(schema, `The file is damaged, or is no database: ${(error as Error).message}`);
  }
}

/** As `immutable`, unless it has a log: SQLite would create a WAL beside a file in WAL mode even to read it. */
function nameToRead(file: string): string {
  if (existsSync(`${file}-wal`) || existsSync(`${file}-journal`)) return file;
  const url = pathToFileURL(file);
  url.searchParams.set('immutable', '1');
  return url.href;
}

/** The SHA-256 of a file, in hexadecimal. */
export function sha256Of(file: string): string {
  const hash = createHash('sha256');
  const fd = openSync(file, 'r');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (;;) {
      const bytes = readSync(fd, chunk, 0, CHUNK_BYTES, null);
      if (bytes === 0) return hash.digest('hex');
      hash.update(chunk.subarray(0, bytes));
    }
  } finally {
    closeSync(fd);
  }
}

/**
 * The first three mistakes in the pages of a file; or all of one table, where it is named. `quick_check` does
 * not compare indexes with their tables.
 */
export function damageIn(db: Database, check: 'integrity_check' | 'quick_check', table?: string): string[] {
  const of = table === undefined ? '3' : `'${table.replaceAll("'", "''")}'`;
  return db
    .all<Record<string, string>>(`pragma ${check}(${of})`)
    .map((row) => (row[check] ?? '').replaceAll('\n', ' '))
    .filter((sentence) => sentence !== 'ok');
}

function contentsOf(db: Database, schema: number): Inspection {
  const damage = damageIn(db, 'integrity_check');
  if (damage.length > 0)
    return unreadable(schema, ...damage.map((sentence) => `The file is damaged: ${sentence}`));
  const there = db.all<{ name: string }>("select name from sqlite_schema where type = 'table'");
  const missing = TABLES.filter((name) => !there.some((table) => table.name === name));
  if (missing.length > 0) {
    return unreadable(schema, `This is no database of flowhook: it has no table ${missing.join(', ')}`);
  }
  return inspectionOf(schema, db.get(CONTENTS) as Contents, db.all(VERSIONS.sqlite));
}
