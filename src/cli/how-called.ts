/** How the user calls this program, for commands that are printed as a next step. */
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isExecutable } from '../std/own-files.ts';

const INSTALLED = '/node_modules/';

/**
 * Returns what to type in a shell, in the given directory, to call this program again.
 *
 * @param directory absolute
 * @param script the path by which this program was called
 */
export function callFrom(directory: string, script: string = process.argv[1] ?? ''): string {
  // The executable may have been called by a path, because it is not in PATH.
  if (isExecutable) return script === 'flowhook' ? script : inShell(process.execPath);
  const at = script.lastIndexOf(INSTALLED);
  // npm links a global installation as `flowhook` in a directory of PATH.
  if (at === -1 && basename(script) !== 'flowhook.js') return 'flowhook';
  const home = at === -1 ? dirname(dirname(script)) : script.slice(0, at);
  const [spec, ...others] = packagesOfNpx(home);
  // npx would install a tarball again that is named in another way.
  const isNamedSo = directory === process.cwd() || !/^(file:)?\./.test(spec ?? '');
  if (spec !== undefined && others.length === 0 && isNamedSo) return `npx --yes ${inShell(spec)}`;
  return `${directory}/`.startsWith(`${home}/`) ? 'npx flowhook' : inShell(script);
}

/** Returns the packages as the user named them to npx, if npx installed them in this directory of its cache. */
function packagesOfNpx(home: string): readonly string[] {
  try {
    return JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))._npx?.packages ?? [];
  } catch {
    return [];
  }
}

/** Quotes a path for a shell, if it needs quotes. */
export function inShell(path: string): string {
  return /^[\w./@-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
