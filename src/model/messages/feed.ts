/** A feed: the changes of one workflow as Atom and JSON Feed, at an address that works without a key. */

export const FEED_ENTRIES = ['record', 'version'] as const;

/** Maximum number of feeds per workflow. */
export const MAX_FEEDS = 20;
/** Maximum number of characters of a title. */
export const MAX_FEED_TITLE = 200;
export const FEED_LIMIT = { least: 1, most: 200, usual: 50 };
const DAY_MS = 86_400_000;
/** How far back a feed reaches. */
export const FEED_WINDOW = { leastMs: DAY_MS, mostMs: 365 * DAY_MS, usualMs: 30 * DAY_MS };

/** What the owner of a feed chooses. */
export interface FeedSettings {
  /** Null: the name of the workflow. */
  title: string | null;
  /** An expression that selects changes; null for all. */
  filter: string | null;
  /** Whether each entry is about a changed record, or about a version. */
  entries: (typeof FEED_ENTRIES)[number];
  windowMs: number;
  /** Maximum number of entries. */
  most: number;
}

/** Times in epoch milliseconds. */
export interface Feed extends FeedSettings {
  teamId: string;
  id: string;
  workflowId: string;
  /** The sealed token of the address. */
  token: string;
  /** Increases with each change of the settings. */
  revision: number;
  createdAt: number;
  changedAt: number;
}
