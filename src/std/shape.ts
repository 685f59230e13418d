/** Describes values as JSON Schema. */

/** A time in an answer: see `toIso`. */
export const isoTime = {
  type: 'string',
  format: 'date-time',
  description: 'ISO 8601 in UTC with milliseconds',
};

export const isoTimeOrNull = { ...isoTime, type: ['string', 'null'] };
