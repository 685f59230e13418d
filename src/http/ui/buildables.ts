/** What is built from its sources where somebody serves from a clone: the pages of the dashboard, and the guide. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { DASHBOARD_INPUTS, GUIDE_INPUTS } from './sources.ts';

export interface Buildable {
  /** What people and the log call it. */
  name: 'dashboard' | 'guide';
  /** Below the root. What was built lies in `dist` there. */
  folder: string;
  /** What it is made of, below the root. */
  inputs: readonly string[];
  /**
   * What Node runs to build it, to which `--outDir` is added; nothing where there is nothing to build with or from, as in
   * a package.
   *
   * @param root of the repository
   */
  command(root: string): string[] | undefined;
}

export const DASHBOARD: Buildable = {
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

export const GUIDE: Buildable = {
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
