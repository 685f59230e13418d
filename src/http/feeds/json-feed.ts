/** JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/). */
import { toIso } from '../../std/clock.ts';
import { type FeedDocument, urnOf } from './document.ts';

export const JSON_FEED_TYPE = 'application/feed+json; charset=utf-8';

export function jsonFeedOf({ title, description, urls, entries }: FeedDocument): string {
  return JSON.stringify({
    version: 'https://jsonfeed.org/version/1.1',
    title: title.toWellFormed(),
    home_page_url: urls.html,
    feed_url: urls.json,
    description: description.toWellFormed(),
    authors: [{ name: 'Flowhook' }],
    items: entries.map((entry) => ({
      id: urnOf(entry.uuid),
      url: entry.url,
      title: entry.title.toWellFormed(),
      summary: entry.summary.toWellFormed(),
      content_html: entry.html,
      date_published: toIso(entry.at),
      date_modified: toIso(entry.at),
    })),
  });
}
