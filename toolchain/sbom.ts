/**
 * The bill of materials of the package `flowhook` (CycloneDX): what its bundles contain, and the Node that npm installs
 * with it. `npm sbom` knows every package of the repository, and the licenses of the bundles say which of them are inside.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { BUNDLES, packagesIn } from './licenses.ts';

interface Component {
  'bom-ref': string;
  name: string;
  version: string;
  purl: string;
  scope?: string;
  properties?: unknown[];
}

interface Bill {
  metadata: { component: Component; lifecycles: { phase: string }[] };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/**
 * @param root the repository, after `npm run build`
 * @throws Error if a bundle contains a package that package-lock.json does not have
 */
export function billOf(root: string): Bill {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64_000_000 } as const;
  const all: Bill = JSON.parse(
    execFileSync('npm', ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'], options),
  );
  const bundled = new Set(BUNDLES.flatMap((name) => packagesIn(join(root, name))));
  const { metadata } = all;
  const nameOf = ({ purl }: Component) => decodeURIComponent(purl.replace(/^pkg:npm\/|\?.*$/g, ''));
  const known = new Set(all.components.map(nameOf));
  const missing = [...bundled].filter((name) => !known.has(name));
  if (missing.length > 0) throw new Error(`package-lock.json does not have ${missing.join(', ')}`);

  const isNode = (component: Component) => /^node-(bin-)?(linux|darwin|win)-/.test(nameOf(component));
  // npm lists a package twice that is installed twice.
  const byRef = new Map(all.components.map((one) => [one['bom-ref'], one]));
  const kept = [...byRef.values()].filter((one) => isNode(one) || bundled.has(nameOf(one)));
  const refs = new Set(kept.map((one) => one['bom-ref']));
  const needs = new Map(
    all.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn.filter((one) => refs.has(one))]),
  );
  const own = metadata.component['bom-ref'];
  const workspaces = [...needs.keys()].filter((ref) => ref.startsWith('@flowhook/'));
  const direct = [own, ...workspaces].flatMap((ref) => needs.get(ref) ?? []);
  return {
    ...all,
    metadata: {
      ...metadata,
      lifecycles: [{ phase: 'build' }],
      // npm names the package after its directory.
      component: { ...metadata.component, name: 'flowhook' },
    },
    // npm marks development packages as optional, but a bundle cannot do without them.
    components: kept.map((one) => ({ ...one, scope: isNode(one) ? 'optional' : 'required', properties: [] })),
    dependencies: [
      { ref: own, dependsOn: [...new Set(direct)] },
      ...[...refs].map((ref) => ({ ref, dependsOn: needs.get(ref) ?? [] })),
    ],
  };
}
