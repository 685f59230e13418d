/** How far the tables of a database have come. */
export interface SchemaState {
  /** Their version; 0 when there are none. */
  found: number;
  /** The newest version that this code knows. */
  newest: number;
  /** The files of the migrations that have not been run, in order. */
  waiting: string[];
}
