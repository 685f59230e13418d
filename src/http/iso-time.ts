/** How times look in answers, as JSON Schema. */
export const isoTime = {
  type: 'string',
  format: 'date-time',
  description: 'ISO 8601 in UTC with milliseconds',
};
