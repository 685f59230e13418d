/** Parses YAML and finds the line of each setting. */
import type { Pair } from 'yaml';
import { yaml } from '../std/yaml.ts';
import type { LineOf, Mistake } from './checker.ts';

/** Bounds how much aliases may expand a definition. */
const MAX_ALIASES = 100;
/** Of syntax errors. */
const MAX_ERRORS = 100;

/** Mistakes that say nothing of the text behind them; all others make the parser stumble on. */
const INDEPENDENT = ['DUPLICATE_KEY', 'TAG_RESOLVE_FAILED', 'TAB_AS_INDENT'];

/** Parses one YAML document. @returns its value, or its mistakes with their lines: of the syntax only the first */
export function readYaml(
  text: string,
  file: string,
): { value: unknown; lineOf: LineOf } | { mistakes: Mistake[]; untold: number } {
  const { isMap, isScalar, isSeq, LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  // Warnings are about unknown tags, whose values would not be what the author means.
  const all = [...document.errors, ...document.warnings];
  const first = all.find(({ code }) => !INDEPENDENT.includes(code));
  const found = all.filter((error) => error === first || INDEPENDENT.includes(error.code));
  const mistakes = found.slice(0, MAX_ERRORS).map(({ message, pos: [at] }) => {
    const opened = message.startsWith('Flow ') ? unclosedAt(text.slice(0, at)) : undefined;
    if (opened === undefined) {
      return { file, line: lines.linePos(at).line, message: `This is not valid YAML: ${message}` };
    }
    const [open, close] = text[opened] === '{' ? '{}' : '[]';
    const what = `the \`${open}\` in this line is never closed. Add a \`${close}\``;
    return { file, line: lines.linePos(opened).line, message: `This is not valid YAML: ${what}` };
  });
  if (mistakes.length > 0) return { mistakes, untold: found.length - mistakes.length };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    return {
      mistakes: [{ file, line: null, message: `This YAML cannot be read: ${(error as Error).message}` }],
      untold: 0,
    };
  }
  if (value === null || value === undefined) {
    return {
      mistakes: [{ file, line: 1, message: 'The file is empty. A definition needs at least a `source`' }],
      untold: 0,
    };
  }

  /** Of each map that was asked about, so that many mistakes in it do not each walk over all of its keys. */
  const indexes = new WeakMap<object, Map<string, Pair>>();
  const pairOf = (map: { items: Pair[] }, part: string): Pair | undefined => {
    let index = indexes.get(map);
    if (index === undefined) {
      // Backwards, so that the first of equal keys is the one that is found.
      index = new Map(
        map.items
          .toReversed()
          .flatMap((pair) => (isScalar(pair.key) ? [[String(pair.key.value), pair]] : [])),
      );
      indexes.set(map, index);
    }
    return index.get(part);
  };

  /** The line of the key, or of its nearest ancestor that the file has. */
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

/** What holds brackets that are none: quoted texts and comments. */
const QUOTED = /(?<=^|[\s,:[{])(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|#.*)/gm;

/** Where the last bracket is that nothing closes. */
function unclosedAt(text: string): number | undefined {
  const plain = text.replace(QUOTED, (quoted) => ' '.repeat(quoted.length));
  const open: number[] = [];
  for (const { 0: bracket, index } of plain.matchAll(/[{}[\]]/g)) {
    if (bracket === '{' || bracket === '[') open.push(index);
    else open.pop();
  }
  return open.at(-1);
}
