/**
 * For `npm pack` in this directory: `node pack.ts` puts the manifest of the published package in the place of
 * package.json, `node pack.ts back` puts that back. npm packs the manifest that lies beside the files, and ours names the
 * TypeScript sources, which Node does not run under node_modules.
 */
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const at = (...names: string[]) => join(import.meta.dirname, ...names);
const OWN = at('package.json');
/** Also where it is after a pack that was broken off. */
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
  // At once: whoever imports the client meanwhile finds one or the other.
  renameSync(next, OWN);
}
