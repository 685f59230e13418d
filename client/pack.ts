/**
 * For `npm pack` in this directory: `node pack.ts` replaces package.json with the manifest of the published package, and
 * `node pack.ts back` restores it. npm packs the package.json of the directory, and ours exports TypeScript sources, which
 * Node does not run under node_modules.
 */
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const at = (...names: string[]) => join(import.meta.dirname, ...names);
const OWN = at('package.json');
/** The original package.json, also after an interrupted pack. */
const KEPT = at('dist', 'package.json.repository');

if (process.argv[2] === 'back') {
  if (existsSync(KEPT)) renameSync(KEPT, OWN);
} else {
  const built = JSON.parse(readFileSync(at('dist', 'package.json'), 'utf8'));
  const door = { types: './dist/flowhook-client.d.ts', default: './dist/flowhook-client.js' };
  const files = ['dist/*.js', 'dist/*.d.ts', 'dist/LICENSE'];
  copyFileSync(OWN, KEPT);
  const next = at('dist', 'package.json.next');
  writeFileSync(next, `${JSON.stringify({ ...built, files, exports: { '.': door } }, null, 2)}\n`);
  // The file is renamed, not written, so that concurrent imports of the client find either the old or the new file.
  renameSync(next, OWN);
}
