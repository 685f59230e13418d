/** What the paths of a definition mean in one kind of answer. */
import type { AnyNode } from 'domhandler';
import type { Parse } from '../../../model/http-source.ts';
import { MalformedError } from '../../../std/splitter.ts';
import { compileJsonPath } from './json-path.ts';
import { compileSelector, LINK_ATTRIBUTES, readSelector, textOf } from './selector.ts';

/** No record can be longer; elements within one another each have the texts of all below them. */
const MAX_TEXTS = 16 << 20;

/** All that a path leads to from one part of an answer. */
export type Lookup = (part: unknown) => unknown[];

export interface Grammar {
  /** @param options.trim texts of HTML and XML without the white space that nobody sees */
  compile(path: string, options: { trim: boolean }): Lookup;
  /** Whether what this path leads to is an address, to be made absolute. */
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
