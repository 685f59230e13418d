/** Packages as npm packs them, and tools that npm installs for a test. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { promisify } from 'node:util';
import { ROOT } from '../docs/snippets.ts';

const run = promisify(execFile);

/** An empty directory, deleted after the tests of the file. */
export function emptyDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-packages-'));
  after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export interface Packed {
  tarball: string;
  /** The packed files, with slashes, sorted. */
  files: string[];
}

/**
 * Packs a folder of the repository; its scripts build it first.
 *
 * @param options.builds `false` packs what is there
 */
export async function pack(folder: string, into: string, { builds = true } = {}): Promise<Packed> {
  const options = ['--json', '--pack-destination', into, ...(builds ? [] : ['--ignore-scripts'])];
  const { stdout } = await npm(['pack', ...options], join(ROOT, folder));
  // A list up to npm 11, an object by name in later versions.
  const [packed] = Object.values(
    JSON.parse(stdout) as Record<string, { filename: string; files: { path: string }[] }>,
  );
  if (packed === undefined) throw new Error(`npm has packed nothing: ${stdout}`);
  return { tarball: join(into, packed.filename), files: packed.files.map(({ path }) => path).sort() };
}

/** Runs npm without install scripts of packages. */
export function npm(args: readonly string[], cwd: string) {
  return run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd, maxBuffer: 16_000_000 });
}

/**
 * Installs packages in an empty directory, without install scripts.
 *
 * @param packages such as `publint@0.3.25`
 * @returns the path of `node_modules`, or why they could not be installed
 */
export async function installed(
  packages: readonly string[],
): Promise<{ modules: string; skip: string | false }> {
  const directory = emptyDirectory();
  writeFileSync(join(directory, 'package.json'), '{"private":true}\n');
  const modules = join(directory, 'node_modules');
  try {
    await npm(['install', '--ignore-scripts', '--prefer-offline', ...packages], directory);
    return { modules, skip: false };
  } catch (error) {
    return { modules, skip: `npm could not install ${packages.join(' ')}: ${(error as Error).message}` };
  }
}
