/** Parses HTML as a browser does, and XML without what it could be made to do: no entities of its own, no files. */
import { createRequire } from 'node:module';
import type { Document } from 'domhandler';

/** Each parser is loaded when an answer needs it. */
const require = createRequire(import.meta.url);

export function parseMarkup(text: string, options: { xml: boolean }): Document {
  if (options.xml) {
    const { parseDocument } = require('htmlparser2') as typeof import('htmlparser2');
    return parseDocument(text, { xmlMode: true });
  }
  const { parse } = require('parse5') as typeof import('parse5');
  const { adapter } =
    require('parse5-htmlparser2-tree-adapter') as typeof import('parse5-htmlparser2-tree-adapter');
  return parse(text, { treeAdapter: adapter }) as unknown as Document;
}

/** What links of a page are relative to: its own address, or its `<base href>`. */
export function baseOf(document: Document, url: string): string {
  const open: { children?: unknown[]; name?: string; attribs?: Record<string, string> }[] = [
    document as never,
  ];
  // Only the head may hold one, and it comes first.
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
