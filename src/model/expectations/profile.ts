/** What the records of a run look like: one profile per run, of the records that the run emitted. */
import type { ValueType } from './expect.ts';

/** Maximum number of fields of a profile. Further fields are only counted. */
export const MAX_PROFILED = 200;
/** Relative standard error of `distinct`: 1.04 / sqrt(256 registers). */
export const DISTINCT_ERROR = 0.065;

export interface Profile {
  /** Records that were emitted, without invalid and suppressed ones; with those that repeat an id. */
  records: number;
  /** By name, in order of first appearance: the top level of records. */
  fields: Record<string, FieldProfile>;
  /** Number of fields beyond the first 200. */
  omitted: number;
}

/** A value is filled if it is not missing, not null and not `""`. */
export interface FieldProfile {
  filled: number;
  /** Number of filled values of each type. Each value counts once, as its most specific type: a URL is not a text. */
  types: Partial<Record<ValueType, number>>;
  /** Smallest and largest number; null if there is none. */
  numbers: [min: number, max: number] | null;
  /** Length of the shortest and longest text in UTF-16 characters, of any type of text; null if there is none. */
  lengths: [min: number, max: number] | null;
  /** First and last `date` or `datetime`, as written, compared as text; null if there is none. */
  dates: [min: string, max: string] | null;
  /** Estimated number of distinct filled values: see `DISTINCT_ERROR`. */
  distinct: number;
}
