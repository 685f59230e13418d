/** Writes package.json of the published package into `dist`. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const read = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));
// The repository runs the TypeScript sources, but Node strips no types under node_modules.
const { private: _, scripts: __, ...manifest } = read('package.json');
const door = { types: './flowhook-client.d.ts', default: './flowhook-client.js' };
const dist = join(import.meta.dirname, 'dist');
writeFileSync(
  join(dist, 'package.json'),
  `${JSON.stringify({ ...manifest, sideEffects: false, exports: { '.': door } }, null, 2)}\n`,
);
copyFileSync(join(import.meta.dirname, '..', 'LICENSE'), join(dist, 'LICENSE'));
