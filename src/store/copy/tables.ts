/** The tables that a copy of a database consists of, and what each driver opens for a copy. */
import type { Sql } from '../sql.ts';

export interface Table {
  name: string;
  /** The primary key: the order in which the table is read. */
  key: readonly string[];
  /** Columns with long values, whose bytes limit the size of a page. */
  long?: readonly string[];
  /** A condition in SQL for rows that are not copied. */
  except?: string;
}

/** The name of the row in `instance` that marks an unfinished copy, or with the value `MOVING` something else. */
export const MARKER = 'unfinished_copy';

/** The marker's value while `flowhook database distribute` moves tables. */
export const MOVING = 'distribute';

/** Returns the error when a database with a marker is opened. */
export function refusalOf(marker: string): string {
  return marker === MOVING
    ? 'The tables of this database have been distributed only in part. Run `flowhook database distribute` again, or ' +
        '`flowhook database distribute --undo`'
    : 'This database is an unfinished copy. Create it again, and repeat `flowhook database copy`';
}

/**
 * Every table, with its key on PostgreSQL; tables come after those they refer to. `rows.ts` describes what differs on
 * SQLite. The columns are read from the databases.
 */
export const TABLES: readonly Table[] = [
  { name: 'instance', key: ['name'], except: `name = '${MARKER}'` },
  { name: 'team', key: ['id'] },
  { name: 'api_key', key: ['id'] },
  { name: 'signing_key', key: ['team_id', 'id'] },
  { name: 'quota', key: ['team_id', 'name'] },
  { name: 'workflow', key: ['team_id', 'id'], long: ['definition', 'state'] },
  { name: 'version', key: ['team_id', 'workflow_id', 'number'], long: ['fields'] },
  { name: 'job', key: ['team_id', 'id'], long: ['error', 'progress'] },
  { name: 'job_log', key: ['team_id', 'job_id', 'attempt', 'part', 'seq'], long: ['body'] },
  { name: 'idempotency', key: ['team_id', 'operation', 'target', 'key'] },
  { name: 'record', key: ['team_id', 'workflow_id', 'seq', 'added_in'], long: ['body'] },
  { name: 'profile', key: ['team_id', 'workflow_id', 'version'], long: ['body'] },
  {
    name: 'quarantined',
    key: ['team_id', 'workflow_id', 'added_in', 'position'],
    long: ['reasons', 'body'],
  },
  { name: 'event', key: ['team_id', 'sequence'], long: ['body'] },
  { name: 'webhook', key: ['team_id', 'id'], long: ['headers', 'rule'] },
  { name: 'webhook_rule', key: ['team_id', 'webhook_id', 'revision'], long: ['rule'] },
  { name: 'decision', key: ['team_id', 'event_sequence', 'webhook_id'], long: ['progress'] },
  {
    name: 'quiet_record',
    key: ['team_id', 'webhook_id', 'workflow_id', 'record_key'],
    long: ['sent', 'newest'],
  },
  { name: 'feed', key: ['team_id', 'id'], long: ['filter'] },
  { name: 'ended_feed', key: ['team_id', 'token_hash'] },
  { name: 'delivery', key: ['team_id', 'id'], long: ['body'] },
  { name: 'attempt', key: ['team_id', 'delivery_id', 'number'], long: ['error', 'response', 'details'] },
  { name: 'replay', key: ['team_id', 'id'] },
  { name: 'suppression', key: ['team_id', 'workflow_id', 'kind', 'hash'] },
  { name: 'audit', key: ['team_id', 'id'], long: ['details'] },
  { name: 'usage_place', key: ['team_id'] },
  { name: 'usage', key: ['team_id', 'kind', 'subject', 'period', 'start'] },
];

/**
 * These tables are not copied, because inspectors last a day, and belong to the address of the servers on this
 * database.
 */
export const INSPECTOR_TABLES: readonly Table[] = [
  { name: 'inspector', key: ['id', 'team_id'] },
  { name: 'inspected_request', key: ['team_id', 'inspector_id', 'number'], long: ['request', 'body'] },
];

/** These tables are not copied, because leases, sessions and the schema version belong to one database. */
export const LEFT_BEHIND: readonly string[] = [
  'session',
  'sign_in_link',
  'chore',
  'lane',
  'schema_version',
  ...INSPECTOR_TABLES.map(({ name }) => name),
];

/** In a distributed database, every node has these tables, because a key or a session is looked up before its team. */
export const ON_EVERY_NODE: readonly string[] = ['api_key', 'session', 'sign_in_link', 'instance'];

/** A database as a copy sees it. */
export interface Tables {
  /** Says which servers use the database and what to do first; undefined if none is known to. */
  inUse(): Promise<string | undefined>;
  /** Reads one snapshot of the database, without a time limit. */
  read<Result>(read: (db: Sql) => Promise<Result>): Promise<Result>;
  /** Writes in one transaction, which is rolled back when `write` rejects. */
  write(write: (db: Sql) => Promise<void>): Promise<void>;
  /** Updates the planner's statistics after many rows were written. */
  analyze(): Promise<void>;
  close(): Promise<void>;
}
