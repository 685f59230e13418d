/** Checks a database file that nobody writes to: reads all of it, counts its rows and reports what is wrong. */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { halfVersion, type Inspection, type VerifiedBackup } from '../backup.ts';
import { type BackupCounts, readManifest } from '../backup-files.ts';
import { REFUSAL } from '../copy/marker.ts';
import { MARKER } from '../copy/tables.ts';
import { NEWEST_SCHEMA } from '../migrations.ts';
import { RETIRED } from '../team-tables.ts';
import { Database, isOutside } from './database.ts';

const TABLES: Readonly<Record<keyof BackupCounts, string>> = {
  teams: 'team',
  workflows: 'workflow',
  jobs: 'job',
  records: 'record',
  events: 'event',
  webhooks: 'webhook',
  deliveries: 'delivery',
};
const NO_COUNTS = { teams: 0, workflows: 0, jobs: 0, records: 0, events: 0, webhooks: 0, deliveries: 0 };
const CHUNK_BYTES = 1_048_576;

/** Checks a backup: its bytes against the manifest beside it, then as `inspect` does. Changes nothing. */
export function verifyFile(file: string): VerifiedBackup {
  const manifest = readManifest(file);
  const { size: bytes } = statSync(file);
  const inspection = inspect(file);
  const checksumMatches =
    manifest === undefined ? null : manifest.bytes === bytes && manifest.sha256 === sha256Of(file);
  const mistakes = [
    ...(checksumMatches === false
      ? [
          `The file is not the one that was made: it has ${bytes} bytes and another checksum than its manifest`,
        ]
      : []),
    ...inspection.mistakes,
  ];
  return { file, bytes, checksumMatches, ...inspection, mistakes };
}

/** Checks every page, index and table of a database file. Damage is reported, not thrown. */
export function inspect(file: string): Inspection {
  const newest = NEWEST_SCHEMA;
  let db: Database | undefined;
  let schema = 0;
  try {
    db = new Database(nameToRead(file), { readOnly: true });
    schema = db.get<{ user_version: number }>('pragma user_version')?.user_version ?? 0;
    return { newest, schema, ...contentsOf(db, schema, newest) };
  } catch (error) {
    if (!isOutside(error)) throw error;
    const mistakes = [`The file is damaged, or is no database: ${(error as Error).message}`];
    return { newest, schema, counts: NO_COUNTS, encryptionKey: null, mistakes };
  } finally {
    db?.close();
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

function contentsOf(db: Database, schema: number, newest: number) {
  const mistakes: string[] = [];
  const found = db.all<{ integrity_check: string }>('pragma integrity_check(3)');
  for (const { integrity_check: sentence } of found) {
    if (sentence !== 'ok') mistakes.push(`The file is damaged: ${sentence.replaceAll('\n', ' ')}`);
  }
  if (mistakes.length > 0) return { counts: NO_COUNTS, encryptionKey: null, mistakes };
  const there = db.all<{ name: string }>("select name from sqlite_schema where type = 'table'");
  const missing = ['instance', 'version', ...Object.values(TABLES)].filter(
    (name) => !there.some((table) => table.name === name),
  );
  if (missing.length > 0) {
    mistakes.push(`This is no database of flowhook: it has no table ${missing.join(', ')}`);
    return { counts: NO_COUNTS, encryptionKey: null, mistakes };
  }
  if (schema > newest) {
    mistakes.push(
      `Its tables have version ${schema}, and this flowhook knows versions up to ${newest}: use the newer flowhook`,
    );
  }
  const noted = (name: string) =>
    db.get<{ value: string }>('select value from instance where name = ?', name)?.value;
  if (noted(MARKER) !== undefined) mistakes.push(REFUSAL);
  const counts: BackupCounts = { ...NO_COUNTS };
  for (const [noun, table] of Object.entries(TABLES)) {
    counts[noun as keyof BackupCounts] =
      db.get<{ rows: number }>(`select count(*) as rows from ${table}`)?.rows ?? 0;
  }
  mistakes.push(...halfVersions(db));
  return { counts, encryptionKey: noted('encryption_key') ?? null, mistakes };
}

/** Versions whose records are incomplete. Teams being deleted are left out: some of their rows are gone already. */
function halfVersions(db: Database): string[] {
  return db
    .all<{ workflow: string; version: number; total: number; found: number }>(
      `select team.slug || '/' || workflow.id as workflow, current_version as version,
              coalesce(version.total, 0) as total,
              (select count(*) from record
               where record.workflow = workflow.number and added_in <= current_version
                 and (removed_in is null or removed_in > current_version)) as found
       from workflow
       join team on team.id = workflow.team_id and team.slug not like '${RETIRED}%'
       left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                        and version.number = current_version
       order by 1`,
    )
    .filter(({ total, found }) => total !== found)
    .map(halfVersion);
}
