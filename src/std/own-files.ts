/**
 * Finds the files of this program: its threads, its child processes, and the files that are not code. In a clone, the
 * program runs from `src/`. The published package contains a bundle, in which all code is in `dist/`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

const isBundle = !import.meta.url.endsWith('.ts');

/** The directory of the repository or of the installed package. */
export const ROOT = fileURLToPath(new URL(isBundle ? '..' : '../..', import.meta.url));

/** The programs that run in a thread or a child process. Their sources are below `src/`; in the bundle, each is a file. */
export const PROGRAMS = {
  'body-thread': 'records/body-thread.ts',
  'check-thread': 'definitions/check-thread.ts',
  'file-process': 'store/sqlite/file-process.ts',
  'http-harness': 'sources/http/harness.ts',
  'ingest-thread': 'records/ingest-thread.ts',
  'module-harness': 'sources/process/module-harness.ts',
  'writer-thread': 'store/sqlite/writer-thread.ts',
} as const;

export type Program = keyof typeof PROGRAMS;

export function programFile(name: Program): string {
  return fileURLToPath(new URL(isBundle ? `./${name}.js` : `../${PROGRAMS[name]}`, import.meta.url));
}

export function startThread(name: Program, options: WorkerOptions): Worker {
  return new Worker(programFile(name), options);
}

/** Returns the command that runs the program in a child process. */
export function commandOf(name: Program): string[] {
  return [process.execPath, programFile(name)];
}

/** Reads a text file. @param path relative to the repository or the package */
export function readOwnFile(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}
