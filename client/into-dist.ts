/** Copies the built client into the built service, because its package exists only in this repository. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const dist = join(import.meta.dirname, '..', 'dist');
const client = join(dist, 'client');
cpSync(join(import.meta.dirname, 'dist'), client, {
  recursive: true,
  // Files of the client's own package.
  filter: (source) => !/(package\.json|LICENSE|\.d\.ts)$/.test(source),
});
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  const file = join(dist, name);
  if (!name.endsWith('.js') || file.startsWith(client)) continue;
  const text = readFileSync(file, 'utf8');
  const door = relative(dirname(file), join(client, 'flowhook-client.js'));
  // All importers are in folders, so the path starts with `../`. The compiler leaves both forms of import unchanged.
  const own = text.replace(/(\bfrom |\bimport\()(['"])flowhook-client\2/g, `$1$2${door}$2`);
  if (own !== text) writeFileSync(file, own);
}
