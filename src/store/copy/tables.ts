/** The tables that a copy of a database consists of, and what each driver implements to read and write them. */

/** A value of one column in one row. */
export type Cell = string | number | null;

export interface Table {
  name: string;
  /** Its primary key: the order in which it is read. */
  key: readonly string[];
  /** Columns with long values, whose bytes limit the size of a page. */
  long?: readonly string[];
  /** A condition in SQL for rows that are not copied. */
  except?: string;
}

/** The name of the row in `instance` that marks an unfinished copy. */
export const MARKER = 'unfinished_copy';

/**
 * Every table, with the keys and columns that it has on PostgreSQL; what others refer to comes first. SQLite's are
 * brought into this shape in `sqlite/copy-tables.ts`. The columns are those that the databases have.
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
  { name: 'event', key: ['team_id', 'sequence'], long: ['body'] },
  { name: 'webhook', key: ['team_id', 'id'], long: ['headers'] },
  { name: 'delivery', key: ['team_id', 'id'] },
  { name: 'attempt', key: ['team_id', 'delivery_id', 'number'], long: ['error', 'response', 'details'] },
  { name: 'replay', key: ['team_id', 'id'] },
  { name: 'suppression', key: ['team_id', 'workflow_id', 'kind', 'hash'] },
  { name: 'audit', key: ['team_id', 'id'], long: ['details'] },
  { name: 'usage_place', key: ['team_id'] },
  { name: 'usage', key: ['team_id', 'kind', 'subject', 'period', 'start'] },
];

/** Not copied: inspectors last a day, and belong to the address of the servers that use this database. */
export const INSPECTOR_TABLES: readonly Table[] = [
  { name: 'inspector', key: ['id'] },
  { name: 'inspected_request', key: ['team_id', 'inspector_id', 'number'], long: ['request', 'body'] },
];

/** Not copied: leases, sessions and the schema version are true of one database only. */
export const LEFT_BEHIND: readonly string[] = [
  'session',
  'sign_in_link',
  'chore',
  'lane',
  'schema_version',
  ...INSPECTOR_TABLES.map(({ name }) => name),
];

/** The maximum size of a page: in rows, and in bytes of its long columns, unless it is one row. */
export const PAGE_ROWS = 1_000;
export const PAGE_BYTES = 4_194_304;

export interface Column {
  name: string;
  isNumber: boolean;
}

/** A cursor: where a page ended, in a form that only the driver that read it understands. */
export type Place = readonly Cell[];

export interface Page {
  /** Values in the order of the requested columns. */
  rows: Cell[][];
  /** The cursor for the next page; null when this was the last. */
  next: Place | null;
}

/** Reads one snapshot of a database. */
export interface TableReader {
  /** How many rows of a table are copied. */
  count(table: Table): Promise<number>;
  page(table: Table, columns: readonly Column[], after: Place | null): Promise<Page>;
}

/** A database as a copy sees it. */
export interface Tables {
  /** The columns of a table by name, as PostgreSQL has them. */
  columns(table: Table): Promise<Column[]>;
  /** Says in a sentence which servers use the database; undefined when none is known to. */
  inUse(): Promise<string | undefined>;
  snapshot<Result>(read: (reader: TableReader) => Promise<Result>): Promise<Result>;
  marker(): Promise<string | undefined>;
  /**
   * Adds rows, and sets the marker in the same transaction.
   *
   * @throws Error, and changes nothing, when the marker is not what it was
   */
  write(step: {
    insert?: { table: Table; columns: readonly Column[]; rows: readonly Cell[][] };
    marker: { was: string | undefined; becomes: string | undefined };
  }): Promise<void>;
  /** Updates the statistics of the planner after many rows were written. */
  analyze(): Promise<void>;
  close(): Promise<void>;
}

/** How many of the next rows make a page, given the bytes of each; one at least, unless there is none. */
export function rowsOfPage(bytes: readonly number[]): number {
  let sum = 0;
  for (const [place, own] of bytes.entries()) {
    sum += own;
    if (sum > PAGE_BYTES) return Math.max(1, place);
  }
  return bytes.length;
}

export function markerMoved(): Error {
  return new Error(
    'Another `flowhook database copy` writes into the same database. Let that one end, or end it, and run this again',
  );
}
