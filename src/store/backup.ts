/** What is said of a backup that is made, checked or put back: the same whatever makes it. */
import type { BackupCounts, BackupManifest } from './backup-files.ts';

/** A backup that was made. */
export interface MadeBackup extends BackupManifest {
  file: string;
  /** What is wrong with the database itself, and therefore with the backup: then it is not verified. */
  mistakes: string[];
}

/** How far a backup is that is being made. */
export type BackupProgress = { doing: 'copy'; bytes: number; total: number } | { doing: 'check' };

/** What a database looks like that was read from its beginning to its end. */
export interface Inspection {
  /** The version of its tables; 0 when there are none. */
  schema: number;
  /** The newest version that this code knows. */
  newest: number;
  counts: BackupCounts;
  /** The fingerprint of the encryption key that it needs. */
  encryptionKey: string | null;
  /** What is wrong, as sentences; nothing when it is whole. */
  mistakes: string[];
}

/** The same of a file with a manifest. */
export interface VerifiedBackup extends Inspection {
  file: string;
  bytes: number;
  /** Whether it is the file that was made, byte for byte; null when nothing beside it says what that was. */
  checksumMatches: boolean | null;
}

/** A backup that was put back. */
export interface RestoredBackup extends VerifiedBackup {
  /** The database that it is now. */
  database: string;
  /** Where the one lies that was there before. */
  replaced: string | null;
}

/** What is wrong with a workflow whose published version does not have the records that it says it has. */
export function halfVersion(place: {
  workflow: string;
  version: number;
  total: number;
  found: number;
}): string {
  const { workflow, version, total, found } = place;
  return `Version ${version} of ${workflow} should have ${total} records and has ${found}`;
}
