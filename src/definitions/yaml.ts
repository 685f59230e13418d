/** Parses YAML and finds the line of each setting. */
import type { Pair } from 'yaml';
import { yaml } from '../std/yaml.ts';
import type { LineOf, Mistake } from './section.ts';

/** Limits how much aliases may expand a definition. */
const MAX_ALIASES = 100;
/** Maximum number of syntax errors that are returned. */
const MAX_ERRORS = 100;

/**
 * Codes of errors that do not affect how the rest of the file is parsed. Any other error causes further errors, which
 * are not reported.
 */
const INDEPENDENT = ['DUPLICATE_KEY', 'TAG_RESOLVE_FAILED', 'TAB_AS_INDENT'];

/** The next step for the author, by the error code of the YAML parser. */
const NEXT_STEPS: Partial<Record<string, string>> = {
  BAD_INDENT: 'Indent this line as far as the other settings of its group',
  BLOCK_AS_IMPLICIT_KEY: 'Check how far the next line is indented, and quote values that contain a colon',
  MULTILINE_IMPLICIT_KEY: 'Write `key: value`, and check how far this line is indented',
  TAB_AS_INDENT: 'Indent with spaces',
};

/** Parses one YAML document. @returns its value, or its mistakes with their lines */
export function readYaml(
  text: string,
  file: string,
): { value: unknown; lineOf: LineOf } | { mistakes: Mistake[]; omitted: number } {
  const { isMap, isScalar, isSeq, LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  // Warnings count as mistakes, because they are about unknown tags, whose values would differ from what the author
  // intended.
  const all = [...document.errors, ...document.warnings];
  const first = all.find(({ code }) => !INDEPENDENT.includes(code));
  const found = all.filter((error) => error === first || INDEPENDENT.includes(error.code));
  const mistakes = found.slice(0, MAX_ERRORS).map(({ code, message, pos: [at] }) => {
    if (code === 'DUPLICATE_KEY') {
      const [key = ''] = /^(?:"[^"]*"|'[^']*'|[^\s:,}]{1,200})/.exec(text.slice(at, at + 202)) ?? [];
      const twice = `\`${key}\` is set twice in the same map. Remove one of the two`;
      return { file, line: lines.linePos(at).line, message: `This is not valid YAML: ${twice}` };
    }
    const opened = message.startsWith('Flow ') ? unclosedAt(text.slice(0, at)) : undefined;
    if (opened === undefined) {
      const next = NEXT_STEPS[code] === undefined ? '' : `. ${NEXT_STEPS[code]}`;
      return { file, line: lines.linePos(at).line, message: `This is not valid YAML: ${message}${next}` };
    }
    const [open, close] = text[opened] === '{' ? '{}' : '[]';
    const what = `the \`${open}\` in this line is never closed. Add a \`${close}\``;
    return { file, line: lines.linePos(opened).line, message: `This is not valid YAML: ${what}` };
  });
  if (mistakes.length > 0) return { mistakes, omitted: found.length - mistakes.length };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    return {
      mistakes: [{ file, line: null, message: `This YAML cannot be read: ${(error as Error).message}` }],
      omitted: 0,
    };
  }
  if (value === null || value === undefined) {
    return {
      mistakes: [{ file, line: 1, message: 'The file is empty. A definition needs at least a `source`' }],
      omitted: 0,
    };
  }

  /** An index of the keys of each map, so that finding the lines of many mistakes in one map takes linear time. */
  const indexes = new WeakMap<object, Map<string, Pair>>();
  const pairOf = (map: { items: Pair[] }, part: string): Pair | undefined => {
    let index = indexes.get(map);
    if (index === undefined) {
      // The order is reversed, so that the first of several equal keys wins.
      index = new Map(
        map.items
          .toReversed()
          .flatMap((pair) => (isScalar(pair.key) ? [[String(pair.key.value), pair]] : [])),
      );
      indexes.set(map, index);
    }
    return index.get(part);
  };

  /** Returns the line of a setting's key, or of its nearest ancestor in the file. */
  const lineOf: LineOf = (path) => {
    let node: unknown = document.contents;
    let offset = isMap(node) || isSeq(node) || isScalar(node) ? (node.range?.[0] ?? 0) : 0;
    for (const part of path) {
      if (isMap(node)) {
        const pair = pairOf(node, String(part));
        if (pair === undefined) break;
        if (isScalar(pair.key) && pair.key.range) offset = pair.key.range[0];
        node = pair.value;
      } else if (isSeq(node)) {
        node = node.items[Number(part)];
        if ((isMap(node) || isSeq(node) || isScalar(node)) && node.range) offset = node.range[0];
      } else {
        break;
      }
    }
    return lines.linePos(offset).line;
  };
  return { value, lineOf };
}

/** Matches quoted strings and comments, because brackets in them do not count. */
const QUOTED = /(?<=^|[\s,:[{])(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|#.*)/gm;

/** Returns the position of the last unclosed bracket. */
function unclosedAt(text: string): number | undefined {
  const plain = text.replace(QUOTED, (quoted) => ' '.repeat(quoted.length));
  const open: number[] = [];
  for (const { 0: bracket, index } of plain.matchAll(/[{}[\]]/g)) {
    if (bracket === '{' || bracket === '[') open.push(index);
    else open.pop();
  }
  return open.at(-1);
}
