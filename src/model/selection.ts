/** The differences of a version that a filter has selected. */
import type { RowSource } from './messages/notice-row.ts';

/**
 * A difference that matched. `record` and `previous` are whole values, given for templates. For people there are a title
 * and an address instead, and long values are cut.
 */
export type SelectedDifference = RowSource;

/** The differences of a version that match a filter. */
export interface Selection {
  matched: number;
  examined: number;
  /** Those that fit: at most 100, and 16,000 bytes of JSON. */
  differences: readonly SelectedDifference[];
  /** Whether more have matched. */
  truncated: boolean;
}
