/** `npm run release pack` makes what a release publishes, and actionlint finds no mistake in the workflows that run it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { versionOf } from '../../toolchain/versions.ts';
import { ROOT } from '../support/docs/snippets.ts';
import { inPath } from '../support/in-path.ts';
import { emptyDirectory } from '../support/package/packed.ts';

const run = promisify(execFile);
const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12';
const INSTALL_MS = 120_000;

const directory = emptyDirectory();
const program = join(ROOT, 'toolchain', 'release.ts');
await run(process.execPath, [program, 'pack', directory], { cwd: ROOT });
const read = (name: string) => readFileSync(join(directory, name));
const version = versionOf(ROOT);
const tarballs = ['flowhook', 'flowhook-client', 'flowhook-zapier', 'n8n-nodes-flowhook'].map(
  (name) => `${name}-${version}.tgz`,
);

test('a release has a tarball of each package, a bill of materials, and checksums of all', () => {
  assert.deepEqual(readdirSync(directory).sort(), ['SHA256SUMS', 'flowhook.cdx.json', ...tarballs].sort());
  const sums = read('SHA256SUMS').toString().trim().split('\n');
  assert.equal(sums.length, 5);
  for (const line of sums) {
    const [sum, name = ''] = line.split('  ');
    assert.equal(sum, createHash('sha256').update(read(name)).digest('hex'), name);
  }
});

test('a directory with other files is refused, because they would be published', async () => {
  await assert.rejects(run(process.execPath, [program, 'pack', directory]), /is not empty/);
});

test('the bill of materials lists what service, dashboard and guide contain, and Node', () => {
  const bill = JSON.parse(read('flowhook.cdx.json').toString());
  assert.equal(bill.metadata.component.purl, `pkg:npm/flowhook@${version}`);
  const components = bill.components as Record<string, unknown>[];
  const names = components.map(({ name }) => name);
  const platforms = components.filter(({ scope }) => scope === 'optional').map(({ name }) => name);
  assert.deepEqual(platforms.sort(), Object.keys(manifestOf('.').optionalDependencies).sort());

  const missing = [...importedBy('src/**/*.ts'), ...importedBy('dashboard/src/**/*.{ts,tsx}')].filter(
    (name) => !names.includes(name),
  );
  assert.deepEqual(missing, []);
  assert.ok(names.includes('minisearch'));
  for (const name of ['typescript', 'vite', 'rolldown', 'playwright-core', 'fastify', '@types/node']) {
    assert.ok(!names.includes(name), `${name} is only for development`);
  }
  const known = new Set(components.map((one) => one['bom-ref']));
  assert.equal(known.size, components.length);
  for (const one of components) {
    assert.match(String(one.purl), /^pkg:npm\/.+@\d/);
    assert.ok(Array.isArray(one.licenses), `${one.purl} has no license`);
    assert.ok(Array.isArray(one.hashes), `${one.purl} has no hash`);
  }
  for (const { dependsOn } of bill.dependencies) for (const ref of dependsOn) assert.ok(known.has(ref), ref);
});

test('actionlint finds no mistake in the workflows', async (t) => {
  if (inPath('go') === undefined) return t.skip('Go, which builds actionlint, is not installed');
  const GOBIN = join(ROOT, 'node_modules', '.cache', 'actionlint');
  try {
    const signal = AbortSignal.timeout(INSTALL_MS);
    await run('go', ['install', ACTIONLINT], { signal, env: { ...process.env, GOBIN } });
  } catch (error) {
    return t.skip(`actionlint could not be built: ${(error as Error).message.split('\n')[0]}`);
  }
  await run(join(GOBIN, 'actionlint'), ['-no-color'], { cwd: ROOT }).catch(({ stdout }) =>
    assert.fail(stdout),
  );
});

/** The packages that source files import when they run, without our own. */
function importedBy(pattern: string): Set<string> {
  const files = globSync(pattern, { cwd: ROOT, exclude: ['**/*.test.ts', '**/conformance/**'] });
  const names = files.flatMap((file) =>
    [
      ...readFileSync(join(ROOT, file), 'utf8').matchAll(
        /(?:^import(?! type) [^;]*?from |^import |(?<!typeof )\b(?:require|import)\()'([^.'][^']*)'/gm,
      ),
    ].map(([, name = '']) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? ''),
  );
  return new Set(names.filter((name) => !isBuiltin(name) && name !== 'flowhook-client' && name !== ''));
}

function manifestOf(folder: string): { optionalDependencies: Record<string, string> } {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
}
