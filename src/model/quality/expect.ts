/** What a workflow expects of its records (`expect` of a definition), and what a run found instead. */

/**
 * Types of values. `url` is an http or https URL, `date` a day such as `2026-01-31`, `datetime` a time in ISO 8601.
 * `number` includes whole numbers, and `text` includes all texts.
 */
export const VALUE_TYPES = [
  'text',
  'number',
  'integer',
  'boolean',
  'list',
  'object',
  'url',
  'email',
  'date',
  'datetime',
] as const;
export type ValueType = (typeof VALUE_TYPES)[number];

/**
 * What happens if an expectation is not met: `refuse` publishes nothing, `warn` publishes everything, `quarantine` sets
 * the records aside that do not meet one, publishes the others, and refuses if the run as a whole does not meet one.
 */
export const OTHERWISES = ['refuse', 'warn', 'quarantine'] as const;
export type Otherwise = (typeof OTHERWISES)[number];

/** The `expect` of a definition, with every default filled in. Percentages are numbers: `20%` is 20. */
export interface Expect {
  records: RecordsExpect;
  /** By the name of the field, or its path within the record: `address.city`. */
  fields: Record<string, FieldExpect>;
  /** The workflow is stale if no run has succeeded for this time; null: never. */
  freshMs: number | null;
  otherwise: Otherwise;
}

/**
 * Expectations of the data set after a run, except `duplicates`, which is about the records that the run emitted.
 * Null: not expected.
 */
export interface RecordsExpect {
  /** Null: the default of the mode (`defaultMinRecords`), which always refuses. */
  min: number | null;
  max: number | null;
  /** Maximum drop of the number of records, in percent of the number before the run. */
  drop: number | null;
  /** Maximum rise of the number of records, in percent of the number before the run. */
  rise: number | null;
  /** Maximum share of records whose id the run had already emitted, in percent. */
  duplicates: number | null;
}

/** Expectations of one field. Except `filled`, they are about filled values: not missing, not null, not `""`. */
export interface FieldExpect {
  type: ValueType | null;
  /**
   * Of numbers and dates their value; of texts their length in characters (UTF-16), of lists the number of elements.
   * A text is the bound of a `date` or `datetime`.
   */
  min: number | string | null;
  max: number | string | null;
  /** Minimum share of records with a filled value, in percent. */
  filled: number | null;
  /** Whether no two records with different ids have the same value. */
  unique: boolean;
  oneOf: (string | number | boolean)[] | null;
  /** A regular expression of RE2, which must match a part of the text. */
  matches: string | null;
}

export const EXPECT_NO_FIELD: FieldExpect = {
  type: null,
  min: null,
  max: null,
  filled: null,
  unique: false,
  oneOf: null,
  matches: null,
};

/** Expects nothing, except that a run in the mode `replace` has records. */
export const EXPECT_NOTHING: Expect = {
  records: { min: null, max: null, drop: null, rise: null, duplicates: null },
  fields: {},
  freshMs: null,
  otherwise: 'refuse',
};

/** An expectation that a run did not meet, or, with `drift`, an unusual difference from earlier runs. */
export interface JobFinding {
  /** `records.drop` of the run; `type`, `filled`, … of a field. */
  expectation: string;
  field: string | null;
  /** What the run has: a number of records, a percentage, or the first value that is not as expected, shortened. */
  found: number | string | boolean | null;
  /** What was expected: the setting, or the bound of the usual range. */
  limit: number | string | boolean | null;
  /** Number of records that do not meet it; of `records`, the number of records after the run. */
  count: number;
  /** Ids of the first records that do not meet it, at most five. */
  examples: string[];
  drift: boolean;
}

/** Maximum number of findings of a job, and of examples of a finding. */
export const MAX_FINDINGS = 50;
export const MAX_EXAMPLES = 5;
