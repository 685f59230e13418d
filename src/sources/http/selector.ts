/** Paths into HTML and XML: a CSS selector, followed by `@attribute` to take an attribute instead of the text. */
import { createRequire } from 'node:module';
import type { AnyNode, Element } from 'domhandler';

interface Selector {
  /** Null: the element itself. */
  css: string | null;
  /** Null: the text. */
  attribute: string | null;
}

/** Attributes that hold URLs, which are made absolute. */
export const LINK_ATTRIBUTES = ['href', 'src', 'action', 'data', 'poster', 'cite', 'formaction'];

/** `a.next@href`, `@id` (of the element itself), `td:nth-child(2)`, `.` (the element's own text). */
export function readSelector(path: string): Selector {
  const found = /^(.*?)@([\w:.-]+)\s*$/s.exec(path);
  const css = (found?.[1] ?? path).trim();
  return { css: css === '' || css === '.' ? null : css, attribute: found?.[2] ?? null };
}

/**
 * Compiles a selector into a function that finds elements within a node.
 *
 * @throws Error that says what is wrong with the selector
 */
export function compileSelector(css: string, options: { xml: boolean }): (within: AnyNode) => Element[] {
  const { compile, selectAll } = cssSelect();
  let query: ReturnType<typeof compile<AnyNode, Element>>;
  try {
    query = compile<AnyNode, Element>(css, { xmlMode: options.xml });
  } catch (error) {
    throw new Error(`${css} is not a CSS selector: ${(error as Error).message}`, { cause: error });
  }
  return (within) => selectAll<AnyNode, Element>(query, within, { xmlMode: options.xml });
}

/** The text of a node. Trimming also folds white space, as browsers do. Not recursive, because pages may nest deeply. */
export function textOf(node: AnyNode, options: { trim: boolean }): string {
  const parts: string[] = [];
  const open: AnyNode[] = [node];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.type === 'text') parts.push((next as { data: string }).data);
    else if (next.type === 'tag' || next.type === 'root' || next.type === 'cdata') {
      const { children } = next as Element;
      if (options.trim && SEPARATES.has((next as Element).name)) parts.push('\n');
      for (let at = children.length - 1; at >= 0; at--) open.push(children[at] as AnyNode);
    }
  }
  const text = parts.join('');
  return options.trim ? text.replace(/[\s\u00a0]+/gu, ' ').trim() : text;
}

/** Elements whose texts browsers separate even where the page has no white space. */
const SEPARATES = new Set(['br', 'p', 'div', 'li', 'tr', 'td', 'th', 'dt', 'dd', 'h1', 'h2', 'h3', 'h4']);

function cssSelect(): typeof import('css-select') {
  return createRequire(import.meta.url)('css-select') as typeof import('css-select');
}
