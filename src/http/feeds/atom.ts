/** Atom 1.0 (RFC 4287). */
import { toIso } from '../../std/clock.ts';
import { type FeedDocument, type FeedEntry, urnOf } from './document.ts';
import { escaped } from './markup.ts';

export const ATOM_TYPE = 'application/atom+xml; charset=utf-8';

export function atomOf(feed: FeedDocument): string {
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${urnOf(feed.uuid)}</id>
${textOf('title', feed.title)}
${textOf('subtitle', feed.description)}
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
${textOf('title', title)}
<updated>${toIso(at)}</updated>
<published>${toIso(at)}</published>
<link rel="alternate" href="${escaped(url)}"/>
${textOf('summary', summary)}
<content type="html">${escaped(html)}</content>
</entry>
`;
}

/**
 * A text. One with characters of markup is sent as HTML that shows them, because some readers take every text for HTML,
 * and would run what is in it.
 */
function textOf(name: 'title' | 'subtitle' | 'summary', text: string): string {
  const once = escaped(text);
  return /[<>&]/.test(text)
    ? `<${name} type="html">${escaped(once)}</${name}>`
    : `<${name}>${once}</${name}>`;
}
