/** The sources of the dashboard and the guide, and the hash that tells whether a build is of the present ones. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

/** The file in a build that holds its `hashOfSources`. */
export const SOURCES_MARK = '.sources';

export const DASHBOARD_INPUTS: readonly string[] = [
  'dashboard/index.html',
  'dashboard/package.json',
  'dashboard/vite.config.ts',
  'dashboard/public',
  'dashboard/src',
  'client/src',
  'package-lock.json',
];

export const GUIDE_INPUTS: readonly string[] = [
  'docs',
  'site/assets',
  'site/build.ts',
  'site/pages.ts',
  'site/render.ts',
  'site/slug.ts',
  'site/template.ts',
  'package.json',
];

/**
 * SHA-256, in hex, of the names and contents of all files.
 *
 * @param root of the repository
 * @param inputs files and directories below it
 */
export async function hashOfSources(root: string, inputs: readonly string[]): Promise<string> {
  const files = (await Promise.all(inputs.map((input) => filesOf(join(root, input))))).flat();
  const hash = createHash('sha256');
  for (const path of files.sort()) {
    const bytes = await readFile(path);
    hash.update(`${relative(root, path).split(sep).join('/')} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}

/** The file itself, or all files below a directory; none where neither exists. */
async function filesOf(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTDIR') return [path];
    if (code === 'ENOENT') return [];
    throw error;
  }
}
