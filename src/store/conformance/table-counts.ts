/** A workflow's records as the drivers count them while a run writes, and as the rows show: both must agree. */

export interface TableCounts {
  /** What the run under way has written: as it was counted, and as the rows show. */
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
  /** By how many bytes of records there are more. */
  grown: number;
  /** The size of the current version. */
  bytes: number;
}

/** What a driver's test reads from the tables in one statement, for `toTableCounts`. */
export interface TableCountsRow {
  /** As counted while the run writes, and in the row of the current version. */
  stagedAdded: number | null;
  stagedChanged: number | null;
  stagedRemoved: number | null;
  stagedBytes: number | null;
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

/** Counts as publishing would have to if nothing were counted while it is written. */
export function toTableCounts(row: TableCountsRow): TableCounts {
  return {
    counted: {
      added: row.stagedAdded ?? 0,
      changed: row.stagedChanged ?? 0,
      removed: row.stagedRemoved ?? 0,
      grown: row.stagedBytes ?? 0,
      bytes: row.versionBytes ?? 0,
    },
    found: {
      added: row.written - row.replaced,
      changed: row.replaced,
      removed: row.closed - row.replaced,
      grown: (row.writtenBytes ?? 0) - (row.closedBytes ?? 0),
      bytes: row.currentBytes ?? 0,
    },
    rows: row.rows,
    versions: row.versions,
  };
}
