/** What the checks examine: an installation as its settings describe it, with its database if it can be opened. */
import type { AddressPolicy } from '../net/address-policy.ts';
import type { TrustedProxies } from '../net/host.ts';
import type { Resolver } from '../net/resolver.ts';
import type { RunAs } from '../sources/process/run-as.ts';
import type { SchemaState } from '../store/migrations.ts';
import type { Store } from '../store/store.ts';

/** The settings that checks look at. */
export interface ExaminedSettings {
  host: string;
  port: number;
  dataDirectory: string;
  databaseUrl: string;
  databaseListen: boolean;
  role: string;
  workflowsDirectory: string;
  /** Whether a setting names it explicitly: then it must exist. */
  workflowsNamed: boolean;
  encryptionKey: Buffer | undefined;
  publicUrl: string | undefined;
  trustProxy: TrustedProxies | false;
  allowNetworks: AddressPolicy;
  maxRunningJobs: number;
  backupDirectory: string;
  /** null: no scheduled backups. */
  backupEveryMs: number | null;
  /** The files of the certificate and its key, where the service speaks TLS itself. */
  tlsCert: string | undefined;
  tlsKey: string | undefined;
  /** Every setting with its origin. */
  settings: readonly { origin: string }[];
  /** The system user that sources run as; undefined: the service's own. */
  runAs: RunAs | undefined;
  environment: ReadonlyMap<string, string>;
}

/** The state of the database. */
export interface ExaminedDatabase {
  store: Store | undefined;
  /** Undefined when not even the schema version can be read. */
  schema: SchemaState | undefined;
  /** Why it could not be opened: an error message. */
  mistake: string | undefined;
  /** Why there is no store although nothing is wrong, or another check reports it: a sentence. */
  without: string | undefined;
}

export interface Subject {
  /** Undefined when they cannot be read: see `mistakes`. */
  settings: ExaminedSettings | undefined;
  mistakes: readonly string[];
  /** What may be a mistake, such as a misspelt variable: sentences. */
  doubts: readonly string[];
  database: ExaminedDatabase;
  /** Whether a server runs on this data; null if that cannot be known. */
  isServed: boolean | null;
  /** The running node that examines itself; undefined in a command. */
  node: { port: number; openCircuits: number } | undefined;
  resolver: Resolver;
  /** URLs that may be requested; null: no request may leave this machine. */
  online: readonly string[] | null;
  /** Whether everything is read, however long that takes. */
  isFull: boolean;
  /** This machine's clock, in epoch milliseconds. */
  clock: () => number;
}
