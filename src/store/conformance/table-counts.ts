/** A workflow's records as counted while a run writes, and as found in the rows: both must agree. */

export interface TableCounts {
  /** What the running job has written: as counted, and as found in the rows. */
  counted: Written;
  found: Written;
  /** Rows of records that are or were published, and rows of versions. */
  rows: number;
  versions: number;
}

interface Written {
  added: number;
  changed: number;
  removed: number;
  /** The increase in bytes of records. */
  grown: number;
  /** The bytes of the rows that are closed. */
  replaced: number;
  /** The bytes of the current version. */
  bytes: number;
}

/** The values that a driver's test reads from the tables in one statement, for `toTableCounts`. */
export interface TableCountsRow {
  /** The counts made while the run writes, and the bytes in the row of the current version. */
  stagedAdded: number | null;
  stagedChanged: number | null;
  stagedRemoved: number | null;
  stagedBytes: number | null;
  stagedReplaced: number | null;
  versionBytes: number | null;
  /** Rows that the run has added, has closed, and has closed and replaced. */
  written: number;
  closed: number;
  replaced: number;
  writtenBytes: number | null;
  closedBytes: number | null;
  currentBytes: number | null;
  rows: number;
  versions: number;
}

/** Computes the counts that publishing would have to compute if nothing were counted while writing. */
export function toTableCounts(row: TableCountsRow): TableCounts {
  return {
    counted: {
      added: row.stagedAdded ?? 0,
      changed: row.stagedChanged ?? 0,
      removed: row.stagedRemoved ?? 0,
      grown: row.stagedBytes ?? 0,
      replaced: row.stagedReplaced ?? 0,
      bytes: row.versionBytes ?? 0,
    },
    found: {
      added: row.written - row.replaced,
      changed: row.replaced,
      removed: row.closed - row.replaced,
      grown: (row.writtenBytes ?? 0) - (row.closedBytes ?? 0),
      replaced: row.closedBytes ?? 0,
      bytes: row.currentBytes ?? 0,
    },
    rows: row.rows,
    versions: row.versions,
  };
}
