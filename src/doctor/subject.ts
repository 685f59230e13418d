/** What is examined: an installation as its settings describe it, with its database if that can be opened. */
import type { AddressPolicy } from '../net/address-policy.ts';
import type { Resolver } from '../net/resolver.ts';
import type { TrustedProxies } from '../net/trusted-proxies.ts';
import type { SchemaState } from '../store/schema-state.ts';
import type { Store } from '../store/store.ts';

/** Of the settings what checks look at. */
export interface ExaminedSettings {
  host: string;
  port: number;
  dataDirectory: string;
  databaseUrl: string;
  databaseListen: boolean;
  role: string;
  workflowsDirectory: string;
  /** Whether somebody named it: then it must exist. */
  workflowsNamed: boolean;
  encryptionKey: Buffer | undefined;
  publicUrl: string | undefined;
  trustProxy: TrustedProxies | false;
  allowNetworks: AddressPolicy;
  maxRunningJobs: number;
  backupDirectory: string;
  /** Null: none are made by themselves. */
  backupEveryMs: number | null;
  /** The files of the certificate and its key, where the service speaks TLS itself. */
  tlsCert: string | undefined;
  tlsKey: string | undefined;
  /** Every setting with what holds. */
  settings: readonly { origin: string }[];
  environment: ReadonlyMap<string, string>;
}

/** The database as it was found. */
export interface ExaminedDatabase {
  store: Store | undefined;
  /** Nothing when not even that can be told. */
  schema: SchemaState | undefined;
  /** What stood in the way of opening it. */
  mistake: string | undefined;
  /** Why there is no store, when that is no mistake, or is told elsewhere: a sentence. */
  without: string | undefined;
}

export interface Subject {
  /** Nothing when they cannot be read: `mistakes` says why. */
  settings: ExaminedSettings | undefined;
  mistakes: readonly string[];
  /** What looks like a mistake and is none, such as a variable with a misspelt name: sentences. */
  doubts: readonly string[];
  database: ExaminedDatabase;
  /** Whether a server runs on this data; null where nobody can say. */
  isServed: boolean | null;
  /** The running node that examines itself; nothing in a command. */
  node: { port: number; openCircuits: number } | undefined;
  resolver: Resolver;
  /** URLs that may be asked; null: no request leaves this machine. */
  online: readonly string[] | null;
  /** Whether everything is read, however long that takes. */
  isFull: boolean;
  /** This machine's clock, in epoch milliseconds. */
  clock: () => number;
}
