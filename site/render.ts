/** Renders a page of docs/ as HTML, and extracts the texts that the search indexes. */
import { posix } from 'node:path';
import { Marked, type Token, type Tokens } from 'marked';
import { type Heading, markdown, type Page, plainText } from './pages.ts';

/** A part of a page, from one heading to the next. */
export interface Passage {
  /** The URL below the guide: `concepts/job.html#states`. */
  url: string;
  page: string;
  heading: string;
  text: string;
}

/** The URL of a page or file relative to another page, so that the guide can be served from any path. */
export function urlFrom(page: string, target: string): string {
  return posix.relative(posix.dirname(page), target.replace(/\.md$/, '.html'));
}

/**
 * The content of a page.
 *
 * @param options.isPart whether a path below docs/ is part of the guide; anything else is shown without a link
 */
export function htmlOf(page: Page, options: { isPart: (path: string) => boolean }): string {
  const headings = [...page.headings];
  const local = (href: string): string | undefined => {
    if (/^[a-z]+:/.test(href) || href.startsWith('#')) return href;
    const [, path = '', fragment = ''] = /^([^#]*)(#.*)?$/.exec(href) ?? [];
    const target = posix.join(posix.dirname(page.path), path);
    return options.isPart(target) ? urlFrom(page.path, target) + fragment : undefined;
  };
  const renderer = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        const { id } = headings.shift() as Heading;
        const link =
          depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this part">#</a>`;
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}${link}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        const target = local(href);
        if (target === undefined)
          return `<span class="outside" title="In the repository: ${escaped(href)}">${text}</span>`;
        return `<a href="${escaped(target)}">${text}</a>`;
      },
      image({ href, text }: Tokens.Image) {
        return `<img src="${escaped(local(href) ?? href)}" alt="${escaped(text)}" loading="lazy">`;
      },
      html({ text }: Tokens.HTML | Tokens.Tag) {
        return text.replace(
          /( (?:src|srcset|href)=")([^"]*)"/g,
          (_, name, href) => `${name}${local(href) ?? href}"`,
        );
      },
      // Blocks wider than the page can be scrolled, also with the keyboard.
      code({ text, lang }: Tokens.Code) {
        return `<pre tabindex="0"${lang ? ` data-language="${escaped(lang)}"` : ''}><code>${escaped(text)}</code></pre>\n`;
      },
      table(token: Tokens.Table) {
        const cells = (row: Tokens.TableCell[], tag: 'th' | 'td') => {
          const made = row.map((cell) => {
            // For screen readers, an empty cell is not a heading.
            const name = cell.text === '' ? 'td' : tag;
            return `<${name}>${this.parser.parseInline(cell.tokens)}</${name}>`;
          });
          return `<tr>${made.join('')}</tr>`;
        };
        // Markdown requires a header row even for tables that have none.
        const isHeaded = token.header.some((cell) => cell.text !== '');
        const head = isHeaded ? `<thead>${cells(token.header, 'th')}</thead>` : '';
        const body = `<tbody>${token.rows.map((row) => cells(row, 'td')).join('')}</tbody>`;
        return `<div class="wide" tabindex="0"><table>${head}${body}</table></div>\n`;
      },
    },
  });
  return renderer.parser(page.tokens);
}

/** The passages that the search indexes. */
export function passagesOf(page: Page): Passage[] {
  const headings = [...page.headings];
  const passages: Passage[] = [];
  for (const token of page.tokens) {
    if (token.type === 'heading') {
      const { id, text, depth } = headings.shift() as Heading;
      const url = page.path.replace(/\.md$/, '.html') + (depth === 1 ? '' : `#${id}`);
      passages.push({ url, page: page.title, heading: depth === 1 ? '' : text, text: '' });
    } else {
      // A heading within a quotation does not begin a passage.
      markdown.walkTokens([token], ({ type }) => void (type === 'heading' && headings.shift()));
      const passage = passages.at(-1);
      if (passage !== undefined) passage.text = `${passage.text} ${wordsOf(token)}`.trim();
    }
  }
  return passages;
}

function wordsOf(token: Token): string {
  // The lines of a drawing are not worth indexing.
  if (token.type === 'code' && /[─│]/.test(token.raw)) return '';
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table;
    return [header, ...rows].map((row) => row.map((cell) => plainText(cell.tokens)).join(' ')).join(' ');
  }
  if (token.type === 'list')
    return (token as Tokens.List).items.flatMap((item) => item.tokens.map(wordsOf)).join(' ');
  return plainText([token]).replaceAll(/\s+/g, ' ').trim();
}

export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
