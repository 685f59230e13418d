/**
 * The licenses of the packages that a bundle contains, as `LICENSES.txt` beside it: a plugin of Rolldown and Vite. The
 * file also says which packages these are, from which `sbom.ts` makes the bill of materials.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'rolldown';

/** The directories of the package that contain code of other packages. */
export const BUNDLES = ['dist', 'dashboard/dist', 'site/dist'] as const;

const FILE = 'LICENSES.txt';
const LINE = `\n${'-'.repeat(72)}\n\n`;

export function licenses(): Plugin {
  return {
    name: 'licenses',
    generateBundle(_, bundle) {
      const files = Object.values(bundle).flatMap((one) => ('moduleIds' in one ? one.moduleIds : []));
      this.emitFile({ type: 'asset', fileName: FILE, source: licensesOf(files) });
    },
  };
}

/** Returns the licenses of the packages that the files belong to. Packages with the same text share it. */
export function licensesOf(files: readonly string[]): string {
  const directories = files.flatMap(
    (file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0] ?? [],
  );
  const packages = [...new Set(directories)].sort().map((directory) => {
    const { name, version, license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    const file = readdirSync(directory).find((one) => /^licen[cs]e/i.test(one));
    const text = file === undefined ? '' : readFileSync(join(directory, file), 'utf8').trim();
    return { title: `${name} ${version} (${license})`, text };
  });
  return [...Map.groupBy(packages, ({ text }) => text)]
    .map(([text, alike]) => `${alike.map(({ title }) => title).join('\n')}\n\n${text}\n`)
    .join(LINE);
}

/** Returns the packages that the `LICENSES.txt` in a directory lists, such as `yaml@2.9.1`. */
export function packagesIn(directory: string): string[] {
  const titles = readFileSync(join(directory, FILE), 'utf8')
    .split(LINE)
    .flatMap((part) => part.slice(0, part.indexOf('\n\n')).split('\n'));
  return titles.map((title) => title.replace(/^(\S+) (\S+) \(.*\)$/, '$1@$2'));
}
