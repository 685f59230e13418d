/** The path languages: JSONPath for data, and CSS selectors for HTML and XML. This file also parses HTML and XML. */
import { createRequire } from 'node:module';
import type { AnyNode, Document, Element } from 'domhandler';
import type { Parse } from '../../model/http-source.ts';
import { MalformedError } from '../../std/lines.ts';

/** Parsers, selectors and JSONPath are loaded when a source first needs them. */
const require = createRequire(import.meta.url);

/**
 * Limit for the text that one path matches in one record. Matches may be nested, and each nested match repeats the text
 * of its descendants.
 */
const MAX_TEXTS = 16 << 20;

/** Returns all values that a path matches in one record of the response. */
export type Lookup = (part: unknown) => unknown[];

export interface Grammar {
  /** @param options.trim whether to trim texts in HTML and XML, and to collapse their white space */
  compile(path: string, options: { trim: boolean }): Lookup;
  /** Returns whether a path leads to a URL, which is then made absolute. */
  isLink(path: string): boolean;
}

const json: Grammar = {
  compile: (path) => compileJsonPath(path),
  isLink: () => false,
};

const markup = (xml: boolean): Grammar => ({
  compile(path, { trim }) {
    const { css, attribute } = readSelector(path);
    const find = css === null ? (within: AnyNode) => [within] : compileSelector(css, { xml });
    return (part) => {
      let length = 0;
      return find(part as AnyNode).flatMap((node): string[] => {
        const text = textAt(node as AnyNode, attribute, { trim, xml });
        length += text?.length ?? 0;
        if (length > MAX_TEXTS)
          throw new MalformedError(`${path} matches more than 16 MiB of text in one record`);
        return text === undefined ? [] : [text];
      });
    };
  },
  isLink: (path) => {
    const { attribute } = readSelector(path);
    return attribute !== null && LINK_ATTRIBUTES.includes(attribute.toLowerCase());
  },
});

function textAt(
  node: AnyNode,
  attribute: string | null,
  { trim, xml }: { trim: boolean; xml: boolean },
): string | undefined {
  if (attribute === null) return textOf(node, { trim });
  const value = 'attribs' in node ? node.attribs[xml ? attribute : attribute.toLowerCase()] : undefined;
  return trim ? value?.trim() : value;
}

export function grammarOf(parse: Parse): Grammar {
  return isMarkup(parse) ? markup(parse === 'xml') : json;
}

export function isMarkup(parse: Parse): boolean {
  return parse === 'html' || parse === 'xml';
}

/** Returns all values that a path matches within a value, in order. */
type Finder = (value: unknown) => unknown[];

const STEP =
  /\.([A-Za-z_\u0080-\u{10ffff}][\w\u0080-\u{10ffff}]*)|\[(?:'([^'\\]*)'|"([^"\\]*)"|(\d{1,9}))\]/uy;

/**
 * Returns the names and positions of a path that matches at most one place, such as `$.data['e-mail'][0]`. Undefined
 * for any other path. A path that does not start with `$` is the name of a property.
 */
export function plainSteps(path: string): (string | number)[] | undefined {
  if (!path.startsWith('$')) return [path];
  const steps: (string | number)[] = [];
  STEP.lastIndex = 1;
  while (STEP.lastIndex < path.length) {
    const found = STEP.exec(path);
    if (found === null) return undefined;
    const [, name, single, double, position] = found;
    steps.push(position === undefined ? (name ?? single ?? double ?? '') : Number(position));
  }
  return steps;
}

/** @throws Error that says why the path is invalid */
export function compileJsonPath(path: string): Finder {
  const steps = plainSteps(path);
  if (steps !== undefined) {
    return (value) => {
      const found = walk(value, steps);
      return found === undefined ? [] : [found];
    };
  }
  // Most paths match only one place, and do not need the library.
  const { jsonpath } = require('json-p3') as typeof import('json-p3');
  let query: ReturnType<typeof jsonpath.compile>;
  try {
    query = jsonpath.compile(path);
  } catch (error) {
    throw new Error(`${path} is not a JSONPath: ${(error as Error).message}`, { cause: error });
  }
  return (value) => {
    try {
      return query.query(value as Parameters<typeof query.query>[0]).values();
    } catch (error) {
      // Evaluation fails if the value is nested more deeply than the library supports.
      throw new MalformedError(`${path} cannot be evaluated: ${(error as Error).message}`);
    }
  };
}

function walk(from: unknown, steps: readonly (string | number)[]): unknown {
  let value = from;
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) !== (typeof step === 'number')) {
      return undefined;
    }
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}

interface Selector {
  /** Null: the element itself. */
  css: string | null;
  /** Null: the text. */
  attribute: string | null;
}

/** Attributes that contain a URL. Their values are made absolute. */
const LINK_ATTRIBUTES = ['href', 'src', 'action', 'data', 'poster', 'cite', 'formaction'];

/** Parses `a.next@href`, `@id` (of the element itself), `td:nth-child(2)` or `.` (the text of the element itself). */
export function readSelector(path: string): Selector {
  const found = /^(.*?)@([\w:.-]+)\s*$/s.exec(path);
  const css = (found?.[1] ?? path).trim();
  return { css: css === '' || css === '.' ? null : css, attribute: found?.[2] ?? null };
}

/**
 * Compiles a selector into a function that finds elements within a node.
 *
 * @throws Error that says why the selector is invalid
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

/**
 * Returns the text of a node. Trimming also collapses white space, as browsers do. The function is not recursive,
 * because pages may be deeply nested.
 */
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

/** Elements whose text browsers separate from the surrounding text, even without white space in the page. */
const SEPARATES = new Set(['br', 'p', 'div', 'li', 'tr', 'td', 'th', 'dt', 'dd', 'h1', 'h2', 'h3', 'h4']);

function cssSelect(): typeof import('css-select') {
  return require('css-select') as typeof import('css-select');
}

/**
 * Maximum depth of nested elements. Deeper elements become siblings, as in browsers. The text of an element includes
 * the text of all its descendants, so without a limit, reading the text of each of 100,000 nested elements would take
 * minutes.
 */
const MAX_DEPTH = 512;

export function parseMarkup(text: string, options: { xml: boolean }): Document {
  if (options.xml) {
    const { parseDocument } = require('htmlparser2') as typeof import('htmlparser2');
    return flattened(parseDocument(text, { xmlMode: true }));
  }
  const { parse } = require('parse5') as typeof import('parse5');
  const { adapter } =
    require('parse5-htmlparser2-tree-adapter') as typeof import('parse5-htmlparser2-tree-adapter');
  return flattened(parse(text, { treeAdapter: adapter }) as unknown as Document);
}

function flattened(document: Document): Document {
  const open: { node: Document | Element; depth: number }[] = [{ node: document, depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, depth } = next;
    if (depth === MAX_DEPTH) {
      flatten(node as Element);
      continue;
    }
    for (const child of node.children) {
      if ('children' in child) open.push({ node: child as Element, depth: depth + 1 });
    }
  }
  return document;
}

/** Makes all descendants of an element its direct children, in order. Each descendant keeps only its own text. */
function flatten(root: Element): void {
  const below: AnyNode[] = [];
  const open = root.children.toReversed();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    below.push(next);
    if (!('children' in next)) continue;
    const inner = (next.children as AnyNode[]).filter((child) => 'children' in child);
    for (const child of inner.toReversed()) open.push(child);
    adopt(
      next as Element,
      (next.children as AnyNode[]).filter((child) => !('children' in child)),
    );
  }
  adopt(root, below);
}

function adopt(parent: Element, children: AnyNode[]): void {
  parent.children = children as Element['children'];
  for (const [at, child] of children.entries()) {
    child.parent = parent;
    child.prev = (children[at - 1] ?? null) as typeof child.prev;
    child.next = (children[at + 1] ?? null) as typeof child.next;
  }
}

/** Returns the base URL for the links of a page: its `<base href>`, or else the URL of the page. */
export function baseOf(document: Document, url: string): string {
  const open: { children?: unknown[]; name?: string; attribs?: Record<string, string> }[] = [
    document as never,
  ];
  // Only the head is searched, because no other element may contain a `<base>`.
  for (let looked = 0; looked < 200; looked++) {
    const node = open.shift();
    if (node === undefined) break;
    if (node.name === 'base' && node.attribs?.href !== undefined) {
      return URL.parse(node.attribs.href, url)?.href ?? url;
    }
    if (node.name === undefined || node.name === 'html' || node.name === 'head') {
      open.push(
        ...((node.children ?? []) as typeof open).filter(
          (child) => child.name !== 'body' && child.name !== undefined,
        ),
      );
    }
  }
  return url;
}
