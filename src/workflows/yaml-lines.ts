/** Parses YAML and finds the line of each setting. */
import { yaml } from '../std/yaml.ts';
import type { LineOf, Mistake } from './check.ts';

/** Bounds how much aliases may expand a definition. */
const MAX_ALIASES = 100;

/** Parses one YAML document. @returns its value, or all syntax errors with their lines */
export function readYaml(
  text: string,
  file: string,
): { value: unknown; lineOf: LineOf } | { mistakes: Mistake[] } {
  const { isMap, isScalar, isSeq, LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  // Warnings are about unknown tags, whose values would not be what the author means.
  const mistakes = [...document.errors, ...document.warnings].map((error) => ({
    file,
    line: lines.linePos(error.pos[0]).line,
    message: `This is not valid YAML: ${error.message}`,
  }));
  if (mistakes.length > 0) return { mistakes };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    return {
      mistakes: [{ file, line: null, message: `This YAML cannot be read: ${(error as Error).message}` }],
    };
  }
  if (value === null || value === undefined) {
    return {
      mistakes: [{ file, line: 1, message: 'The file is empty. A definition needs at least a `source`' }],
    };
  }

  /** The line of the key, or of its nearest ancestor that the file has. */
  const lineOf: LineOf = (path) => {
    let node: unknown = document.contents;
    let offset = isMap(node) || isSeq(node) || isScalar(node) ? (node.range?.[0] ?? 0) : 0;
    for (const part of path) {
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
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
