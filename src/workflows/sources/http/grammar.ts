/** What the paths of a definition mean in one kind of answer. */
import type { AnyNode } from 'domhandler';
import type { Parse } from '../../../model/http-source.ts';
import { compileJsonPath } from './json-path.ts';
import { compileSelector, LINK_ATTRIBUTES, readSelector, textOf } from './selector.ts';

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
    return (part) =>
      find(part as AnyNode).flatMap((node): string[] => {
        if (attribute === null) return [textOf(node as AnyNode, { trim })];
        const value = 'attribs' in node ? node.attribs[xml ? attribute : attribute.toLowerCase()] : undefined;
        return value === undefined ? [] : [trim ? value.trim() : value];
      });
  },
  isLink: (path) => {
    const { attribute } = readSelector(path);
    return attribute !== null && LINK_ATTRIBUTES.includes(attribute.toLowerCase());
  },
});

export function grammarOf(parse: Parse): Grammar {
  return parse === 'html' || parse === 'xml' ? markup(parse === 'xml') : json;
}
