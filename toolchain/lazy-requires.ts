/**
 * A plugin of Rolldown that loads a module when it is first used instead of when the file that imports it is loaded. A
 * command then loads only the chunks and the modules of Node that it really uses. `keepCode` of `src/std/own-files.ts`
 * reads the other chunks.
 *
 * `const node_fs = require("node:fs"); … node_fs.statSync(…)` becomes
 * `let node_fs$; const node_fs = () => node_fs$ ??= require("node:fs"); … (node_fs()).statSync(…)`.
 */
import type { Plugin } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { LAZY } from '../src/std/own-files.ts';

type Node = { type: string; start: number; end: number; [key: string]: unknown };

/** The names that Rolldown gives to modules of Node and to chunks. It gives them to nothing else. */
const NAME = /^(node_|require_)/;
/** Rolldown's helpers, which every file uses immediately. */
const RUNTIME = /rolldown-runtime/;

/** @param eager the names of entries that load everything that they import immediately */
export function lazyRequires(eager: readonly string[]): Plugin {
  return {
    name: 'lazy-requires',
    renderChunk(code, { fileName }, _, { chunks }) {
      const loaded = new Set(Object.keys(chunks).filter((file) => eager.includes(chunks[file]?.name ?? '')));
      for (const file of loaded) for (const imported of chunks[file]?.imports ?? []) loaded.add(imported);
      return loaded.has(fileName) ? null : { code: withLazyRequires(code) };
    },
  };
}

/** @param code a CommonJS chunk */
export function withLazyRequires(code: string): string {
  const program = parseAst(code, { sourceType: 'script' }) as unknown as Node & { body: Node[] };
  const modules = new Map<string, string>();
  const edits: { start: number; end: number; text: string }[] = [];
  const rest: Node[] = [];
  for (const statement of program.body) {
    const { name, value } = assignmentIn(statement, code);
    const before = modules.get(name);
    if (NAME.test(name) && !RUNTIME.test(value) && /^require\("[^"]+"\)$/.test(value)) {
      modules.set(name, value);
    } else if (before !== undefined) {
      // `node_fs = __toESM(node_fs, 1)`, for a default import.
      modules.set(
        name,
        value.replace(new RegExp(`\\b${name}\\b`), () => before),
      );
    } else {
      rest.push(statement);
      continue;
    }
    edits.push({ start: statement.start, end: statement.end, text: '' });
  }
  for (const { name, start, end, shorthand } of rest.flatMap((statement) => references(statement, modules))) {
    // In parentheses, because `new node_events().Thing()` would construct something else.
    edits.push({ start, end, text: `${shorthand ? `${name}: ` : ''}(${name}())` });
  }
  edits.sort((a, b) => a.start - b.start);
  const first = program.body.find(({ directive }) => directive === undefined)?.start ?? 0;
  let at = first;
  const parts = edits.map(({ start, end, text }) => {
    const part = code.slice(at, start) + text;
    at = end;
    return part;
  });
  const loaders = [...modules].map(
    ([name, value]) => `let ${name}$; const ${name} = () => ${name}$ ??= ${value};\n`,
  );
  const chunks = [...modules.values()].flatMap((value) => /"\.\/[^"]+"/.exec(value) ?? []);
  const list = chunks.length > 0 ? `(globalThis.${LAZY} ??= []).push(${chunks.join(', ')});\n` : '';
  return `${code.slice(0, first)}${loaders.join('')}${list}${parts.join('')}${code.slice(at)}`;
}

/** Returns the only name that a statement declares or assigns, and its value as code; empty for other statements. */
function assignmentIn(statement: Node, code: string): { name: string; value: string } {
  const declared = (statement.declarations as { id: Node; init: Node | null }[] | undefined) ?? [];
  const { operator, left, right } = (statement.expression ?? {}) as {
    operator?: string;
    left?: Node;
    right?: Node;
  };
  const [target, value] = declared.length === 1 ? [declared[0]?.id, declared[0]?.init] : [left, right];
  const isPlain = target?.type === 'Identifier' && value && (operator ?? '=') === '=';
  return isPlain
    ? { name: String(target.name), value: code.slice(value.start, value.end) }
    : { name: '', value: '' };
}

/** A place that refers to a module; with `shorthand`, it is also the name of a property. */
interface Reference {
  name: string;
  start: number;
  end: number;
  shorthand: boolean;
}

function references(node: Node, modules: ReadonlyMap<string, string>, shorthand = false): Reference[] {
  const { start, end } = node;
  const name = String(node.name);
  if (node.type === 'Identifier') return modules.has(name) ? [{ name, start, end, shorthand }] : [];
  return Object.entries(node).flatMap(([key, value]) => {
    const isName = (key === 'property' || key === 'key') && node.computed !== true;
    if (isName || typeof value !== 'object' || value === null) return [];
    return [value]
      .flat()
      .flatMap((one) => (isNode(one) ? references(one, modules, node.shorthand === true) : []));
  });
}

function isNode(value: unknown): value is Node {
  return typeof (value as Node | null)?.type === 'string';
}
