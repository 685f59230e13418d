/** Atom 1.0 (RFC 4287). */
import { toIso } from '../../std/clock.ts';
import { type FeedDocument, type FeedEntry, urnOf } from './document.ts';
import { escaped } from './markup.ts';

export const ATOM_TYPE = 'application/atom+xml; charset=utf-8';

export function atomOf(feed: FeedDocument): string {
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${urnOf(feed.uuid)}</id>
<title>${escaped(feed.title)}</title>
<subtitle>${escaped(feed.description)}</subtitle>
<updated>${toIso(feed.updatedAt)}</updated>
<author><name>Flowhook</name></author>
<generator>Flowhook</generator>
<link rel="self" type="application/atom+xml" href="${escaped(feed.urls.atom)}"/>
<link rel="alternate" type="text/html" href="${escaped(feed.urls.html)}"/>
${feed.entries.map(entryOf).join('')}</feed>
`;
}

function entryOf({ uuid, title, url, at, summary, html }: FeedEntry): string {
  return `<entry>
<id>${urnOf(uuid)}</id>
<title>${escaped(title)}</title>
<updated>${toIso(at)}</updated>
<published>${toIso(at)}</published>
<link rel="alternate" href="${escaped(url)}"/>
<summary>${escaped(summary)}</summary>
<content type="html">${escaped(html)}</content>
</entry>
`;
}
