/** The path language of each format: JSONPath for data, CSS selectors for markup. */
import type { AnyNode } from 'domhandler';
import type { Parse } from '../../model/http-source.ts';
import { MalformedError } from '../../std/lines.ts';
import { compileJsonPath } from './json-path.ts';
import { compileSelector, LINK_ATTRIBUTES, readSelector, textOf } from './selector.ts';

/** Limit of the text that a path finds in one record; nested elements each repeat the text of those in them. */
const MAX_TEXTS = 16 << 20;

/** Returns everything that a path matches in one record as it came. */
export type Lookup = (part: unknown) => unknown[];

export interface Grammar {
  /** @param options.trim whether to trim and fold the white space of texts in HTML and XML */
  compile(path: string, options: { trim: boolean }): Lookup;
  /** Whether this path leads to a URL, to be made absolute. */
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
          throw new MalformedError(`${path} leads to more than 16 MiB of text in one record`);
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
