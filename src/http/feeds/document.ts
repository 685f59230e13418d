/** What a feed shows, in whichever format it is sent. All texts are plain. */
import type { FeedUrls } from './addresses.ts';

export interface FeedDocument {
  /** Permanent and unique. */
  uuid: string;
  title: string;
  description: string;
  urls: FeedUrls;
  /** The newest change, in epoch milliseconds. */
  updatedAt: number;
  /** Newest first. */
  entries: FeedEntry[];
}

export interface FeedEntry {
  /** Permanent and unique. */
  uuid: string;
  title: string;
  /** Absolute. */
  url: string;
  /** In epoch milliseconds. */
  at: number;
  /** One sentence, for readers without HTML. */
  summary: string;
  /** Markup whose texts are escaped. */
  html: string;
}

/** The id of a feed or an entry in its documents. */
export function urnOf(uuid: string): string {
  return `urn:uuid:${uuid}`;
}
