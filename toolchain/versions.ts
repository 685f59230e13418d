/** The places that name the version of Flowhook. All its packages have the same version. */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The directories of the packages that a release publishes. */
export const PACKAGES = ['.', 'client', 'integrations/n8n', 'integrations/zapier'] as const;

/** The version is the last group of each pattern. */
const MANIFEST =
  /"name": "(?:flowhook|flowhook-client|n8n-nodes-flowhook|flowhook-zapier)",\s+"version": "([^"]+)"/g;
const TARBALL = /\bflowhook(?:-[a-z]+)*-(\d+\.\d+\.\d+[^\s`]*)\.tgz/g;
export const PLACES: readonly [files: string, ...patterns: RegExp[]][] = [
  ['package.json', MANIFEST],
  ['package-lock.json', MANIFEST],
  ['client/package.json', MANIFEST],
  ['integrations/{n8n,zapier}/package.json', MANIFEST],
  ['integrations/{n8n,zapier}/package-lock.json', MANIFEST],
  ['client/src/transport.ts', /\bVERSION = '([^']+)'/g],
  ['client/test/transport.test.ts', /flowhook-client\/([\d.]+)/g],
  ['client/README.md', /flowhook-client\/([\d.]+)/g, TARBALL],
  ['integrations/n8n/README.md', TARBALL],
  ['docs/{guides/clients,operate/install}.md', TARBALL],
  ['docs/operate/kubernetes.md', /\bflowhook:(\d+\.\d+\.\d+)/g],
  ['README.md', /\*\*Status:\*\* version (\d+\.\d+\.\d+)/g],
  ['deploy/helm/*/Chart.yaml', /^(?:version|appVersion): (\S+)$/gm],
];

interface Place {
  file: string;
  pattern: RegExp;
  versions: string[];
}

function placesIn(root: string): Place[] {
  return PLACES.flatMap(([files, ...patterns]) =>
    globSync(files, { cwd: root }).flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      return patterns.map((pattern) => ({
        file,
        pattern,
        versions: [...text.matchAll(pattern)].map((match) => match.at(-1) ?? ''),
      }));
    }),
  );
}

export function versionOf(root: string): string {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;
}

/** Returns a sentence for each place that names another version than package.json. */
export function differences(root: string): string[] {
  const version = versionOf(root);
  return placesIn(root).flatMap(({ file, pattern, versions }) => {
    if (versions.length === 0) return [`${file} names no version: nothing matches ${pattern.source}`];
    return [...new Set(versions)]
      .filter((found) => found !== version)
      .map((found) => `${file} names version ${found}, but package.json has ${version}`);
  });
}

/** Writes the version in all places. */
export function setVersion(root: string, version: string): void {
  for (const { file, pattern } of placesIn(root)) {
    const path = join(root, file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(
      path,
      text.replaceAll(pattern, (match, found: string) => match.replace(found, version)),
    );
  }
}
