/** The profile of a run: what its records look like, as numbers per field. Profiles contain no texts of records. */
import { VALUE_TYPES } from './expect.ts';

/**
 * Kinds of filled values. A number without a fraction is an `integer`. The kind of a text is its form: a `numeric`
 * text contains just a number; a `text` has none of the other forms.
 */
export const VALUE_KINDS = [...VALUE_TYPES, 'numeric'] as const;
export type ValueKind = (typeof VALUE_KINDS)[number];

/** Limits of a stored profile. Further fields are only counted. */
export const MAX_PROFILE_FIELDS = 200;
export const MAX_PROFILE_BYTES = 65_536;

/** The standard error of `distinct`, as a share of the estimate. */
export const DISTINCT_ERROR = 0.065;

/** The values of one field in the records of a run. Properties without a value are left out. */
export interface ProfileField {
  /** Name of the field, or its path in nested objects: `address.city`. */
  name: string;
  /** Number of records that have the field, with any value, also null. */
  present: number;
  /** Number of records in which the field is not missing, null or `""`. */
  filled: number;
  /** Number of filled values of each kind that occurs. */
  kinds: Partial<Record<ValueKind, number>>;
  /** Estimated number of different texts, numbers and booleans (see `DISTINCT_ERROR`). */
  distinct?: number;
  /** Smallest and largest number. */
  min?: number;
  max?: number;
  /** Lengths of the shortest and the longest text, in UTF-16 code units. */
  shortest?: number;
  longest?: number;
  /** First and last day of the dates and times: `2026-11-24`. */
  earliest?: string;
  latest?: string;
}

/** The properties that are those of a single value. */
export const EXTREMES = [
  'min',
  'max',
  'shortest',
  'longest',
  'earliest',
  'latest',
] as const satisfies readonly (keyof ProfileField)[];

/** The profile without the extremes of its fields, because they may be those of a person who is erased. */
export function withoutExtremes(profile: Profile): Profile {
  const fields = profile.fields.map(({ min, max, shortest, longest, earliest, latest, ...field }) => field);
  return { ...profile, fields };
}

export interface Profile {
  /** Number of valid records that the run emitted, including repeated ids. */
  records: number;
  /** How many of the records repeat an id of the run. */
  duplicates: number;
  /** In order of first appearance. */
  fields: ProfileField[];
  /** Number of fields that are not listed: at least this many, at most 1,000. */
  omitted: number;
}
