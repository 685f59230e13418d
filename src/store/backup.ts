/** The results of making, checking and restoring a backup. */
import type { BackupCounts, BackupManifest } from './backup-files.ts';

/** A backup that was made. */
export interface MadeBackup extends BackupManifest {
  file: string;
  /** What is wrong with the database, and so with the backup, which then is not verified. */
  mistakes: string[];
}

/** The progress of making a backup. */
export type BackupProgress = { doing: 'copy'; bytes: number; total: number } | { doing: 'check' };

/** The result of checking a whole database. */
export interface Inspection {
  /** Its schema version; 0 when it has no tables. */
  schema: number;
  /** The newest schema version that this code knows. */
  newest: number;
  counts: BackupCounts;
  /** The fingerprint of the encryption key that it needs. */
  encryptionKey: string | null;
  /** What is wrong, as sentences; empty if nothing is. */
  mistakes: string[];
}

/** The same for a backup file. */
export interface VerifiedBackup extends Inspection {
  file: string;
  bytes: number;
  /** Whether the bytes match the manifest; null without a manifest. */
  checksumMatches: boolean | null;
}

/** A backup that was restored. */
export interface RestoredBackup extends VerifiedBackup {
  /** The path of the restored database. */
  database: string;
  /** Where the previous database was moved to; null if there was none. */
  replaced: string | null;
}
