/** Rules about the structure of the code. Each finding is a sentence that says where the problem is and what to do. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** A violation of a rule. */
export interface Finding {
  rule: string;
  sentence: string;
}

/** Lowest first. A file imports only from a lower level or from its own folder. */
const LEVELS: readonly (readonly string[])[] = [
  ['std'],
  ['observe'],
  ['net'],
  ['model'],
  ['store', 'sources'],
  ['teams', 'definitions', 'records', 'webhooks'],
  ['jobs', 'doctor', 'resources'],
  ['http'],
  ['config'],
  ['service'],
  ['cli'],
  ['main.ts'],
];

/** Maximum number of files in a folder, without tests. */
const MOST_FILES = 30;

/** The client's public interface, which the dashboard imports as an installed package would offer it. */
const CLIENT = 'client/src/flowhook-client.ts';

const VAGUE_NAMES = [
  'utils',
  'util',
  'helpers',
  'helper',
  'types',
  'common',
  'lib',
  'index',
  'misc',
  'shared',
];

interface SourceFile {
  /** Relative to the root, with slashes: `src/jobs/engine.ts`. */
  path: string;
  text: string;
  /** The text without comments. */
  code: string;
  /** The text without comments and contents of strings. */
  bare: string;
  imports: Import[];
}

interface Import {
  /** The specifier. */
  from: string;
  /** The path relative to the root, for relative imports. */
  target: string | undefined;
  /** Whether it is loaded with `import()`. */
  isLate: boolean;
}

const FOLDERS = ['src', 'test', 'client/src', 'dashboard/src'];

/** Checks all source files below a root. */
export function findings(root: string): Finding[] {
  const files = FOLDERS.flatMap((folder) => sourceFiles(root, folder));
  return Object.entries(RULES).flatMap(([rule, check]) =>
    check(files).map((sentence) => ({ rule, sentence })),
  );
}

/** The folders that each folder of `src/` imports from, including types, highest first, as in ARCHITECTURE.md. */
export function importsOfLevels(root: string): Map<string, string[]> {
  const files = production(sourceFiles(root, 'src'));
  const importedBy = (folder: string) =>
    files
      .filter(({ path }) => place(path) === folder)
      .flatMap(({ imports }) => imports.map(({ target }) => target ?? ''))
      .filter((target) => target.startsWith('src/'))
      .map(place);
  const down = LEVELS.flat().reverse();
  return new Map(
    down.map((folder) => {
      const found = new Set(importedBy(folder));
      return [folder, down.filter((other) => other !== folder && found.has(other))];
    }),
  );
}

/** The rules by name. Each returns a sentence for every violation. */
export const RULES: Readonly<Record<string, (files: readonly SourceFile[]) => string[]>> = {
  direction: (files) =>
    production(files).flatMap((file) =>
      file.imports.flatMap(({ target }) => {
        if (target === undefined || !target.startsWith('src/')) return [];
        const [from, to] = [place(file.path), place(target)];
        if (from === to) return [];
        const [fromLevel, toLevel] = [level(from), level(to)];
        if (fromLevel === -1)
          return [`${file.path} is outside of the levels: move it to a folder in ARCHITECTURE.md.`];
        if (toLevel !== -1 && toLevel < fromLevel) return [];
        const where = fromLevel === toLevel ? 'is on the same level' : 'is on a higher level';
        return [`${file.path} imports ${target}, but ${to} ${where}: import only from lower levels.`];
      }),
    ),

  'no-cycles': (files) =>
    cycles(production(files)).map(
      (cycle) => `${cycle.join(', ')} import each other: move the shared code to a separate file.`,
    ),

  'folders-at-a-glance': (files) => {
    const shown = files.filter(
      ({ path }) =>
        !path.endsWith('.test.ts') && !path.startsWith('test/') && !path.startsWith('src/store/conformance/'),
    );
    return [...Map.groupBy(shown, ({ path }) => dirname(path))]
      .filter(([, within]) => within.length > MOST_FILES)
      .map(
        ([folder, { length }]) =>
          `${folder} has ${length} files: combine files with one idea, or group them in folders.`,
      );
  },

  'through-the-client': (files) =>
    files.flatMap((file) => {
      const [own] = /^(client|dashboard)\/src\//.exec(file.path) ?? [];
      if (own === undefined) return [];
      return file.imports
        .filter(({ target }) => target !== undefined && target !== CLIENT && !target.startsWith(own))
        .map(({ target }) => `${file.path} imports ${target}: use only the service's API.`);
    }),

  'one-sqlite-file': (files) =>
    production(files)
      .filter((file) => file.path !== 'src/store/sqlite/database.ts')
      .filter((file) => file.imports.some((one) => one.from === 'node:sqlite'))
      .map((file) => `${file.path} imports node:sqlite: only src/store/sqlite/database.ts may.`),

  'driver-named-once': (files) =>
    production(files)
      .filter((file) => file.path !== 'src/store/open.ts')
      .filter((file) => !/^src\/store\/(sqlite|postgres)\//.test(file.path))
      .flatMap((file) =>
        file.imports
          .filter((one) => /^src\/store\/(sqlite|postgres)\//.test(one.target ?? ''))
          .map((one) => `${file.path} imports ${one.target}: only src/store/open.ts names a driver.`),
      ),

  'environment-read-once': (files) =>
    production(files)
      .filter((file) => !file.path.startsWith('src/config/'))
      // `delete` removes a variable for child processes, and `Object.assign` sets variables. Neither reads them.
      .filter((file) => /(?<!\bdelete |\bObject\.assign\()\bprocess\s*\.\s*env\b/.test(file.bare))
      .map((file) => `${file.path} reads process.env: only src/config/ may. Pass the value as an argument.`),

  'status-chosen-once': (files) =>
    production(files)
      .filter((file) => file.path.startsWith('src/http/') && file.path !== 'src/http/server/problem.ts')
      .flatMap((file) =>
        [...file.bare.matchAll(/(?<![\w.])[45]\d\d(?![\w.])/g)].map(
          ([status]) =>
            `${file.path} writes the status ${status}: throw a Problem of src/model/error.ts instead.`,
        ),
      ),

  'no-barrels': (files) =>
    // The entry point of a published package may re-export.
    files
      .filter(({ path }) => path !== CLIENT)
      .flatMap((file) =>
        [
          ...file.code.matchAll(
            /^export\s+(?:type\s+)?(?:\*|\{[^}]*\})(?:\s+as\s+\w+)?\s+from\s+'([^']+)'/gm,
          ),
        ].map(([, from]) => `${file.path} re-exports ${from}: import it from its own file.`),
      ),

  'no-vague-names': (files) =>
    files.flatMap((file) =>
      file.path
        .split('/')
        .map((part) => part.split('.')[0] ?? '')
        .filter((part) => VAGUE_NAMES.includes(part))
        .map((part) => `${file.path} is called "${part}", which is vague: name it after its one idea.`),
    ),

  'opens-with-its-purpose': (files) =>
    files
      .filter((file) => !/^(#![^\n]*\n)?\/\*\*/.test(file.text))
      .map((file) => `${file.path} does not start with /** one line that says what it is for. */`),

  'imports-carry-ts': (files) =>
    files.flatMap((file) =>
      file.imports
        .filter((one) => one.target !== undefined && !/\.(m?ts|tsx|json|css)$/.test(one.from))
        .map((one) => `${file.path} imports '${one.from}' without its extension, which Node requires.`),
    ),

  'tests-do-not-sleep': (files) =>
    files
      .filter((file) => file.path.endsWith('.test.ts'))
      .filter((file) => /\bsleep\s*\(|timers\/promises|setTimeout\(\s*(resolve|done|r)\s*,/.test(file.code))
      .map((file) => `${file.path} sleeps: use a clock, tick() or a signal.`),

  'tests-all-run': (files) =>
    files
      .filter((file) => file.path.endsWith('.test.ts'))
      .filter((file) =>
        /\b(it|test|describe|suite)\s*\.\s*(only|skip|todo)\b|\b(only|todo):\s*true/.test(file.bare),
      )
      .map((file) => `${file.path} skips tests: make them run or delete them.`),
};

function production(files: readonly SourceFile[]): SourceFile[] {
  return files.filter(
    (file) =>
      file.path.startsWith('src/') &&
      !file.path.endsWith('.test.ts') &&
      !file.path.startsWith('src/store/conformance/'),
  );
}

/** `src/store/sqlite/claim.ts` → `store`; `src/main.ts` → `main.ts`. */
function place(path: string): string {
  return path.split('/')[1] ?? '';
}

function level(of: string): number {
  return LEVELS.findIndex((names) => names.includes(of));
}

/** Minimal groups of files that import each other, including types (Tarjan's algorithm). */
function cycles(files: readonly SourceFile[]): string[][] {
  const graph = new Map(
    files.map((file) => [
      file.path,
      file.imports.flatMap(({ target, isLate }) => (target === undefined || isLate ? [] : [target])),
    ]),
  );
  const found: string[][] = [];
  const order = new Map<string, number>();
  const open: string[] = [];
  /** Returns the number of the earliest open file that this file leads to. */
  const visit = (path: string): number => {
    const own = order.size;
    order.set(path, own);
    open.push(path);
    let earliest = own;
    for (const next of graph.get(path) ?? []) {
      if (!order.has(next)) earliest = Math.min(earliest, visit(next));
      else if (open.includes(next)) earliest = Math.min(earliest, order.get(next) as number);
    }
    if (earliest < own) return earliest;
    const group = open.splice(open.indexOf(path));
    if (group.length > 1) found.push(group.sort());
    return own;
  };
  for (const path of graph.keys()) if (!order.has(path)) visit(path);
  return found;
}

function sourceFiles(root: string, folder: string): SourceFile[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(m?ts|tsx)$/.test(name) && !name.split(sep).includes('untidy'))
    .map((name) => readSource(root, join(folder, name).split(sep).join('/')));
}

function readSource(root: string, path: string): SourceFile {
  const text = readFileSync(join(root, path), 'utf8');
  const { code, bare } = strip(text);
  const statements = [
    ...code.matchAll(/^\s*(?:import|export)\s+(?:type\s+)?(?:[\w*{][^;'"]*?\s+from\s+)?'([^']+)'/gm),
  ].map(([, from]) => ({ from: from ?? '', isLate: false }));
  const dynamic = [...code.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)].map(([, from]) => ({
    from: from ?? '',
    isLate: true,
  }));
  const imports = [...statements, ...dynamic].map((one) => ({
    ...one,
    target: one.from.startsWith('.')
      ? relative(root, resolve(root, dirname(path), one.from))
          .split(sep)
          .join('/')
      : undefined,
  }));
  return { path, text, code, bare, imports };
}

/** Removes comments, and in `bare` also the contents of strings, so that words in prose are not findings. */
function strip(text: string): { code: string; bare: string } {
  const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;
  const isComment = (found: string) => found.startsWith('//') || found.startsWith('/*');
  return {
    code: text.replace(token, (found) => (isComment(found) ? ' ' : found)),
    bare: text.replace(token, (found) => (isComment(found) ? ' ' : "''")),
  };
}
