/** Digests: what matches is gathered, and sent in one message at a certain time. */

/** When the digests of a webhook end: after a period in milliseconds, or each day at a time (`HH:MM`) of a zone. */
export type Digest = { everyMs: number } | { at: string; timeZone: string };
