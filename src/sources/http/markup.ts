/** Parses HTML as browsers do, and XML without custom entities or external files. */
import { createRequire } from 'node:module';
import type { AnyNode, Document, Element } from 'domhandler';

/**
 * Limit of nesting, as in browsers; deeper elements become siblings. The text of an element includes that of all
 * elements in it, so reading the text of each of 100,000 nested elements would take minutes.
 */
const MAX_DEPTH = 512;

/** Each parser is loaded when a response needs it. */
const require = createRequire(import.meta.url);

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

/** Makes all descendants of an element its children, in order. Each keeps only its own text. */
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

/** The base URL of the links of a page: its `<base href>`, or its own URL. */
export function baseOf(document: Document, url: string): string {
  const open: { children?: unknown[]; name?: string; attribs?: Record<string, string> }[] = [
    document as never,
  ];
  // Only the head may contain one, and the head comes first.
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
