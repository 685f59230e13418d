/** The page of a feed, for people who open its address in a browser. It needs no script and loads nothing. */
import { createHash } from 'node:crypto';
import { toIso } from '../../std/clock.ts';
import type { FeedDocument, FeedEntry } from './document.ts';
import { escaped } from './markup.ts';

export const PAGE_TYPE = 'text/html; charset=utf-8';

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
body { margin: 0 auto; max-width: 46rem; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem }
h2 { font-size: 1.1rem; line-height: 1.35; margin: 0 }
h3 { font-size: 1rem; margin: 1rem 0 0 }
article { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: 1.25rem 0 }
article:target { background: color-mix(in srgb, currentColor 7%, transparent); padding-inline: .75rem }
time, .about { color: color-mix(in srgb, currentColor 70%, transparent); font-size: .9rem }
table { border-collapse: collapse; margin: .5rem 0; width: 100% }
th, td { border: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: .3rem .5rem; text-align: start; vertical-align: top }
code { font-size: .85rem }`;

/** The page loads nothing, and has exactly this style. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export function pageOf({ title, description, urls, entries }: FeedDocument): string {
  const name = escaped(title);
  const code = (url: string) => `<code>${escaped(url)}</code>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>${name}</title>
<link rel="icon" href="data:,">
<link rel="alternate" type="application/atom+xml" title="${name}" href="${escaped(urls.atom)}">
<link rel="alternate" type="application/feed+json" title="${name}" href="${escaped(urls.json)}">
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${name}</h1>
<p>${escaped(description)}</p>
<p class="about">Subscribe with a feed reader: ${code(urls.atom)} (Atom) or ${code(urls.json)} (JSON Feed). Anyone who has this address can read the feed.</p>
</header>
<main>
${entries.length === 0 ? '<p>Nothing has changed yet.</p>\n' : entries.map(articleOf).join('')}</main>
</body>
</html>
`;
}

function articleOf({ uuid, title, url, at, html }: FeedEntry): string {
  const isOwn = url.endsWith(`#${uuid}`);
  const name = escaped(title);
  const heading = isOwn ? name : `<a href="${escaped(url)}" rel="noreferrer nofollow">${name}</a>`;
  const iso = toIso(at);
  return `<article id="${uuid}">
<h2>${heading}</h2>
<p class="about"><time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')} UTC</time></p>
${html}
</article>
`;
}
