/** What the service can build for itself in a clone of the repository: the dashboard and the guide. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { DASHBOARD_INPUTS, GUIDE_INPUTS } from './sources.ts';

export interface BuildTarget {
  /** Its name in the log and on pages. */
  name: 'dashboard' | 'guide';
  /** Below the root. The build goes to `dist` in it. */
  folder: string;
  /** The files and directories it is built from, below the root. */
  inputs: readonly string[];
  /**
   * The arguments with which Node builds it, to which `--outDir` is added; undefined where the sources or the tools are
   * missing, as in the published package.
   *
   * @param root of the repository
   */
  command(root: string): string[] | undefined;
}

export const DASHBOARD: BuildTarget = {
  name: 'dashboard',
  folder: 'dashboard',
  inputs: DASHBOARD_INPUTS,
  command(root) {
    const manifest = join(root, 'dashboard', 'package.json');
    if (!existsSync(manifest) || !existsSync(join(root, 'dashboard', 'src'))) return undefined;
    const found = resolved(manifest, 'vite/package.json');
    if (found === undefined) return undefined;
    return [join(dirname(found), 'bin', 'vite.js'), 'build', '--emptyOutDir', '--logLevel', 'warn'];
  },
};

export const GUIDE: BuildTarget = {
  name: 'guide',
  folder: 'site',
  inputs: GUIDE_INPUTS,
  command(root) {
    const program = join(root, 'site', 'build.ts');
    return existsSync(program) && resolved(program, 'marked') !== undefined ? [program] : undefined;
  },
};

function resolved(from: string, name: string): string | undefined {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return undefined;
  }
}
