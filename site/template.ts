/** The frame of each page of the guide: menu, search, table of contents, and links to the previous and next page. */
import { INDEX, type Page, type Section } from './pages.ts';
import { escaped, urlFrom } from './render.ts';

/** The API reference, which only a running service has. */
const API = '/docs';

export interface Surroundings {
  sections: readonly Section[];
  /** The pages before and after this page in the menu. */
  previous: Page | undefined;
  next: Page | undefined;
  version: string;
}

export function pageHtml(
  page: Page,
  content: string,
  { sections, previous, next, version }: Surroundings,
): string {
  const to = (path: string) => urlFrom(page.path, path);
  const link = (target: Page) =>
    `<a href="${to(target.path)}"${target === page ? ' aria-current="page"' : ''}>${escaped(target.title.replace(/:.*/, ''))}</a>`;
  const menu = sections
    .map(
      ({ title, pages }) =>
        `<h2>${escaped(title)}</h2><ul>${pages.map((one) => `<li>${link(one)}</li>`).join('')}</ul>`,
    )
    .join('\n');
  const parts = page.headings.filter(({ depth }) => depth === 2);
  return html({
    title: page.path === INDEX ? 'Flowhook: the guide' : `${page.title} · Flowhook`,
    root: to('.') === '' ? '' : `${to('.')}/`,
    body: `<div class="frame">
<details class="menu" open><summary>Pages</summary><nav aria-label="Pages">
<p><a href="${to(INDEX)}"${page.path === INDEX ? ' aria-current="page"' : ''}>Overview</a> · <a href="${API}">API</a></p>
${menu}
</nav></details>
<main id="content" tabindex="-1">
${content}
<nav class="onward" aria-label="Before and after">
${previous === undefined ? '<span></span>' : `<a rel="prev" href="${to(previous.path)}">← ${escaped(previous.title)}</a>`}
${next === undefined ? '' : `<a rel="next" href="${to(next.path)}">${escaped(next.title)} →</a>`}
</nav>
<footer>Flowhook ${escaped(version)}</footer>
</main>
${
  parts.length < 2
    ? ''
    : `<nav class="parts" aria-label="On this page"><h2>On this page</h2><ul>${parts
        .map(({ id, text }) => `<li><a href="#${id}">${escaped(text)}</a></li>`)
        .join('')}</ul></nav>`
}
</div>`,
  });
}

/** The page for an unknown address below the guide. */
export function absentHtml(base: string): string {
  return html({
    title: 'No such page · Flowhook',
    root: base,
    body: `<div class="frame"><main id="content" tabindex="-1"><h1>No such page</h1>
<p>The guide has no page at this address. It may have been moved: search for it above, or begin at the <a href="${base}index.html">overview</a>.</p></main></div>`,
  });
}

function html({ title, root, body }: { title: string; root: string; body: string }): string {
  return `<!doctype html>
<html lang="en" data-root="${root}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}guide.css">
<script defer src="${root}guide.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="name" href="${root}index.html">Flowhook</a>
<form class="search" role="search" hidden>
<input type="search" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list" aria-label="Search the guide" placeholder="Search ( / )" autocomplete="off" spellcheck="false">
<div id="found" role="listbox" aria-label="Found" hidden></div>
<p class="hidden" role="status"></p>
</form>
</header>
${body}
</body>
</html>
`;
}
