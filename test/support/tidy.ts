/** The shape of the code as rules: each finding is one sentence that says where, what, and what to do. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** One rule broken in one place. */
export interface Finding {
  rule: string;
  sentence: string;
}

/** From the lowest to the highest. A file imports only from a lower level or from its own folder. */
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

/** In one folder, without tests. */
const MOST_FILES = 30;

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
  /** Without comments, strings kept. */
  code: string;
  /** Without comments, and with empty strings. */
  bare: string;
  imports: Import[];
}

interface Import {
  /** The path as written. */
  from: string;
  /** Relative to the root, for relative imports. */
  target: string | undefined;
  /** Loaded only when it is needed, by `import()`. */
  isLate: boolean;
}

const FOLDERS = ['src', 'test', 'client/src', 'dashboard/src'];

/** Checks what is our own below a root. */
export function findings(root: string): Finding[] {
  const files = FOLDERS.flatMap((folder) => sourceFiles(root, folder));
  return Object.entries(RULES).flatMap(([rule, check]) =>
    check(files).map((sentence) => ({ rule, sentence })),
  );
}

/** What each folder of `src/` imports of the others, types included, as ARCHITECTURE.md says it; the highest first. */
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

/** The rules by name; each answers one sentence for each place that breaks it. */
export const RULES: Readonly<Record<string, (files: readonly SourceFile[]) => string[]>> = {
  direction: (files) =>
    production(files).flatMap((file) =>
      file.imports.flatMap(({ target }) => {
        if (target === undefined || !target.startsWith('src/')) return [];
        const [from, to] = [place(file.path), place(target)];
        if (from === to) return [];
        const [fromLevel, toLevel] = [level(from), level(to)];
        if (fromLevel === -1)
          return [`${file.path} lies outside the levels: put it into a folder of ARCHITECTURE.md.`];
        if (toLevel !== -1 && toLevel < fromLevel) return [];
        const why = fromLevel === toLevel ? 'stands beside it' : 'stands above it';
        return [`${file.path} imports ${target}, but ${to} ${why}: import only from lower levels.`];
      }),
    ),

  'no-cycles': (files) =>
    cycles(production(files)).map(
      (cycle) => `${cycle.join(', ')} import each other: move what they share into a file of its own.`,
    ),

  'folders-at-a-glance': (files) => {
    const shown = files.filter(
      ({ path }) =>
        !path.endsWith('.test.ts') && !path.startsWith('test/') && !path.startsWith('src/store/conformance/'),
    );
    return [...Map.groupBy(shown, ({ path }) => dirname(path))]
      .filter(([, within]) => within.length > MOST_FILES)
      .map(([folder, { length }]) => `${folder} has ${length} files: join those of one idea, or group them.`);
  },

  'through-the-client': (files) =>
    files.flatMap((file) => {
      const [own] = /^(client|dashboard)\/src\//.exec(file.path) ?? [];
      if (own === undefined) return [];
      return file.imports
        .filter(({ target }) => target !== undefined && !target.startsWith(own))
        .map(({ target }) => `${file.path} imports ${target}: it knows the service only by its API.`);
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
      // Taking one away from what it starts is no reading.
      .filter((file) => /(?<!\bdelete )\bprocess\s*\.\s*env\b/.test(file.bare))
      .map((file) => `${file.path} reads process.env: only src/config/ may; take the value as an argument.`),

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
    // The one door of a package that others install.
    files
      .filter(({ path }) => path !== 'client/src/flowhook-client.ts')
      .flatMap((file) =>
        [
          ...file.code.matchAll(
            /^export\s+(?:type\s+)?(?:\*|\{[^}]*\})(?:\s+as\s+\w+)?\s+from\s+'([^']+)'/gm,
          ),
        ].map(([, from]) => `${file.path} re-exports ${from}: let readers import it from where it is.`),
      ),

  'no-vague-names': (files) =>
    files.flatMap((file) =>
      file.path
        .split('/')
        .map((part) => part.split('.')[0] ?? '')
        .filter((part) => VAGUE_NAMES.includes(part))
        .map((part) => `${file.path} is called "${part}", which says nothing: name it after its one idea.`),
    ),

  'opens-with-its-purpose': (files) =>
    files
      .filter((file) => !/^(#![^\n]*\n)?\/\*\*/.test(file.text))
      .map((file) => `${file.path} does not open with /** one line that says what it is for. */`),

  'imports-carry-ts': (files) =>
    files.flatMap((file) =>
      file.imports
        .filter((one) => one.target !== undefined && !/\.(m?ts|tsx|json|css)$/.test(one.from))
        .map((one) => `${file.path} imports '${one.from}' without its .ts ending: Node does not guess.`),
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
      .map((file) => `${file.path} leaves tests out: make them run or delete them.`),
};

function production(files: readonly SourceFile[]): SourceFile[] {
  return files.filter(
    (file) =>
      file.path.startsWith('src/') &&
      !file.path.endsWith('.test.ts') &&
      !file.path.startsWith('src/store/conformance/'),
  );
}

/** `src/store/sqlite/jobs.ts` → `store`; `src/main.ts` → `main.ts`. */
function place(path: string): string {
  return path.split('/')[1] ?? '';
}

function level(of: string): number {
  return LEVELS.findIndex((names) => names.includes(of));
}

/** Groups of files that import each other, types included, each as few as possible (Tarjan's algorithm). */
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
  /** Returns the earliest open file that this one leads to. */
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

/** Takes comments out, and in `bare` also what stands inside quotes, so that words in prose are no findings. */
function strip(text: string): { code: string; bare: string } {
  const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;
  const isComment = (found: string) => found.startsWith('//') || found.startsWith('/*');
  return {
    code: text.replace(token, (found) => (isComment(found) ? ' ' : found)),
    bare: text.replace(token, (found) => (isComment(found) ? ' ' : "''")),
  };
}
