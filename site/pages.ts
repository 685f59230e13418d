/** The pages of the guide: the Markdown files of docs/, in the order in which docs/index.md links to them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { Marked, type Token, type Tokens } from 'marked';

export interface Page {
  /** The path below docs/, with slashes: `concepts/job.md`. */
  path: string;
  /** The first line of the page. */
  title: string;
  /** The parsed Markdown, without comments. */
  tokens: Token[];
  headings: Heading[];
  /** Targets of links and images, as written. */
  links: string[];
}

export interface Heading {
  depth: number;
  /** Without markup. */
  text: string;
  id: string;
}

/** A group of pages in the menu: a heading of the index. */
export interface Section {
  title: string;
  pages: Page[];
}

export const INDEX = 'index.md';

/** Markdown as GitHub reads it. */
export const markdown = new Marked({ gfm: true });

/** Every page below a directory, by its path. */
export function readPages(directory: string): Map<string, Page> {
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((path) => path.split('\\').join('/'))
    .filter((path) => path.endsWith('.md'))
    .sort();
  return new Map(paths.map((path) => [path, pageOf(path, readFileSync(join(directory, path), 'utf8'))]));
}

export function pageOf(path: string, text: string): Page {
  const tokens = markdown.lexer(text.replace(/^ *<!--[\s\S]*?-->\n/gm, ''));
  const idOf = slugger();
  const headings: Heading[] = [];
  const links: string[] = [];
  markdown.walkTokens(tokens, (token) => {
    if (token.type === 'heading') {
      const heading = plainText(token.tokens ?? []);
      headings.push({ depth: (token as Tokens.Heading).depth, text: heading, id: idOf(heading) });
    }
    if (token.type === 'link' || token.type === 'image') links.push((token as Tokens.Link).href);
    if (token.type === 'html') {
      for (const [, target = ''] of token.raw.matchAll(/ (?:src|srcset|href)="([^"]*)"/g)) links.push(target);
    }
  });
  const [first] = headings;
  if (first?.depth !== 1) throw new Error(`${path} does not begin with a title`);
  // The search identifies a page by its title, and takes no two entries with one address.
  if (headings.filter(({ depth }) => depth === 1).length > 1) throw new Error(`${path} has a second title`);
  return { path, title: first.text, tokens, headings, links };
}

/** The second-level headings of the index, each with the pages that the index links first there. */
export function sectionsOf(pages: ReadonlyMap<string, Page>): Section[] {
  const index = pages.get(INDEX);
  if (index === undefined) throw new Error(`There is no ${INDEX}`);
  const sections: Section[] = [];
  const placed = new Set<string>([INDEX]);
  markdown.walkTokens(index.tokens, (token) => {
    if (token.type === 'heading' && (token as Tokens.Heading).depth === 2) {
      sections.push({ title: plainText(token.tokens ?? []).replace(/:.*/, ''), pages: [] });
    }
    if (token.type !== 'link') return;
    const page = pages.get(posix.normalize((token as Tokens.Link).href.replace(/#.*/, '')));
    if (page === undefined || placed.has(page.path)) return;
    placed.add(page.path);
    sections.at(-1)?.pages.push(page);
  });
  return sections.filter((section) => section.pages.length > 0);
}

/** The text of tokens without markup. */
export function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      if ('tokens' in token && token.tokens !== undefined) return plainText(token.tokens);
      if (token.type === 'html') return '';
      return decoded('text' in token ? String(token.text) : '');
    })
    .join('');
}

/** Decodes the character entities that Markdown takes from HTML. */
function decoded(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}

/** Creates the ids of headings as GitHub does, so that links work in both places. A repeated heading ends in `-1`. */
function slugger(): (heading: string) => string {
  const seen = new Map<string, number>();
  return (heading) => {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
      .replaceAll(' ', '-');
    const before = seen.get(slug);
    seen.set(slug, (before ?? 0) + 1);
    return before === undefined ? slug : `${slug}-${before}`;
  };
}
