/**
 * Finds the files of this program: its threads, its child processes, and the files that are not code. In a clone, the
 * program runs from `src/`. The published package contains a bundle, in which all code is in `dist/`. The executable
 * contains these files: their paths begin with the path of the executable, as if it were a directory, and
 * `toolchain/executable-main.cjs` makes Node import them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createRequire, registerHooks } from 'node:module';
import { join, relative, resolve, sep } from 'node:path';
import { getAsset, getAssetKeys, getRawAsset, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

const isBundle = !import.meta.url.endsWith('.ts');

/** Whether this program is the executable. */
export const isExecutable: boolean = isSea();

/** The directory of the repository or of the installed package, or the executable. */
export const ROOT = fileURLToPath(new URL(isBundle ? '..' : '../..', import.meta.url));

/** The programs that run in a thread or a child process. Their sources are below `src/`; in the bundle, each is a file. */
export const PROGRAMS = {
  'body-thread': 'records/body-thread.ts',
  'check-thread': 'definitions/check-thread.ts',
  'file-process': 'store/sqlite/file-process.ts',
  'http-harness': 'sources/http/harness.ts',
  'ingest-thread': 'records/ingest-thread.ts',
  launcher: 'sources/process/launcher.ts',
  'module-harness': 'sources/process/module-harness.ts',
  'rule-thread': 'webhooks/rules/rule-thread.ts',
  'writer-thread': 'store/sqlite/writer-thread.ts',
} as const;

export type Program = keyof typeof PROGRAMS;

/** The first code that the executable and each of its threads run, as an asset. */
export const FIRST_CODE = 'executable-main.cjs';
/** The arguments of the executable that run a program instead of a command. */
const argumentsFor = (name: Program) => ['--own-program', name];

export function programFile(name: Program): string {
  return fileURLToPath(new URL(isBundle ? `./${name}.cjs` : `../${PROGRAMS[name]}`, import.meta.url));
}

export function startThread(name: Program, options: WorkerOptions): Worker {
  if (!isExecutable) return new Worker(programFile(name), options);
  return new Worker(getAsset(FIRST_CODE, 'utf8'), { ...options, eval: true, argv: argumentsFor(name) });
}

/** Returns the command that runs the program in a child process. */
export function commandOf(name: Program): string[] {
  return [process.execPath, ...(isExecutable ? argumentsFor(name) : [programFile(name)])];
}

/** The name of the global list of chunks that the bundle loads when it uses them: see `toolchain/lazy-requires.ts`. */
export const LAZY = 'flowhookLazy';

/**
 * Keeps the text of chunks that are not loaded yet, because an upgrade may replace the files of a server before it is
 * stopped. The text takes 1 MB; loading all of it would take 9 MB.
 *
 * @param beside the URL of a file in the directory of the chunks
 */
export async function keepCode(beside: string = import.meta.url): Promise<void> {
  const lazy = (globalThis as { [LAZY]?: string[] })[LAZY] ?? [];
  if (isExecutable || lazy.length === 0) return;
  const { cache } = createRequire(beside);
  const kept = new Map<string, Buffer>();
  // The list grows if a request loads a chunk meanwhile: by the chunks which that one may need.
  for (const first of lazy) {
    const names = [first];
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      const { href } = new URL(name, beside);
      const path = fileURLToPath(href);
      if (kept.has(href) || cache[path] !== undefined) continue;
      const text = await readFile(path);
      kept.set(href, text);
      for (const [, needed = ''] of text.toString().matchAll(/\brequire\("(\.\/[^"]+)"\)/g))
        names.push(needed);
    }
  }
  registerHooks({
    resolve(specifier, context, next) {
      const url = specifier.startsWith('./') ? (URL.parse(specifier, context.parentURL)?.href ?? '') : '';
      return kept.has(url) ? { url, format: 'commonjs', shortCircuit: true } : next(specifier, context);
    },
    load(url, context, next) {
      const source = kept.get(url);
      return source === undefined ? next(url, context) : { source, format: 'commonjs', shortCircuit: true };
    },
  });
}

const INSIDE: ReadonlySet<string> = new Set(isExecutable ? getAssetKeys() : []);

/**
 * Returns the name of a file inside the executable, or undefined for a file on disk.
 *
 * @param path absolute, or relative to ROOT
 */
function insideName(path: string): string | undefined {
  const name = relative(ROOT, resolve(ROOT, path)).split(sep).join('/');
  return INSIDE.has(name) ? name : undefined;
}

/** Reads a text file. @param path absolute, or relative to ROOT */
export function readOwnFile(path: string): string {
  const inside = insideName(path);
  return inside === undefined ? readFileSync(resolve(ROOT, path), 'utf8') : getAsset(inside, 'utf8');
}

/** Reads a file that callers must not change. @param path absolute, or relative to ROOT */
export async function readOwnBytes(path: string): Promise<Buffer> {
  const inside = insideName(path);
  return inside === undefined ? readFile(resolve(ROOT, path)) : Buffer.from(getRawAsset(inside));
}

/**
 * Lists the regular files below a directory, without symbolic links.
 *
 * @param directory absolute, or relative to ROOT
 * @returns their paths relative to the directory, with slashes
 * @throws Error if the directory does not exist
 */
export function listOwnFiles(directory: string): string[] {
  const absolute = resolve(ROOT, directory);
  const below = `${relative(ROOT, absolute).split(sep).join('/')}/`;
  const inside = [...INSIDE].filter((name) => name.startsWith(below));
  if (inside.length > 0) return inside.map((name) => name.slice(below.length));
  return readdirSync(absolute, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(absolute, join(entry.parentPath, entry.name)).split(sep).join('/'));
}

/**
 * Returns a text that changes when the file is replaced, or undefined if there is no such file.
 *
 * @param path absolute, or relative to ROOT
 */
export async function markOfOwnFile(path: string): Promise<string | undefined> {
  if (insideName(path) !== undefined) return 'inside';
  const found = await stat(resolve(ROOT, path)).catch(() => undefined);
  return found && `${found.ino} ${found.mtimeMs} ${found.size}`;
}
