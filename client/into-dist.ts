/** Puts the built client into the built service, which then needs no package that only this repository has. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const dist = join(import.meta.dirname, '..', 'dist');
const client = join(dist, 'client');
cpSync(join(import.meta.dirname, 'dist'), client, {
  recursive: true,
  // The manifest is that of a package of its own.
  filter: (source) => !/(package\.json|LICENSE|\.d\.ts)$/.test(source),
});
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  const file = join(dist, name);
  if (!name.endsWith('.js') || file.startsWith(client)) continue;
  const text = readFileSync(file, 'utf8');
  const door = relative(dirname(file), join(client, 'flowhook-client.js'));
  // All lie in folders: the path begins with `../`. Of `import … from 'flowhook-client'` and of `import('flowhook-client')`: the compiler writes both as they were.
  const own = text.replace(/(\bfrom |\bimport\()(['"])flowhook-client\2/g, `$1$2${door}$2`);
  if (own !== text) writeFileSync(file, own);
}
