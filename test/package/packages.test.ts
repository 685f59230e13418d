/** Each package that a release publishes: its files, its manifest, and what publint and "Are the types wrong?" find. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { ROOT } from '../support/docs/snippets.ts';
import { emptyDirectory, installed, npm, pack } from '../support/package/packed.ts';

const run = promisify(execFile);
const REPOSITORY = 'https://github.com/flowhook/flowhook';

interface Package {
  name: string;
  folder: string;
  /** The packed files besides the manifest, the README and the license. `undefined` if package.test.ts checks them. */
  files?: string[];
}

/** Files below a folder, with slashes. */
const below = (folder: string, ...patterns: string[]) => globSync(patterns, { cwd: join(ROOT, folder) });
const built = (file: string, ending: string) => `dist/${file.replace(/^src\//, '').replace(/\.ts$/, ending)}`;

const PACKAGES: readonly Package[] = [
  { name: 'flowhook', folder: '.' },
  {
    name: 'flowhook-client',
    folder: 'client',
    files: ['dist/flowhook-client.js', ...below('client', 'src/*.ts').map((file) => built(file, '.d.ts'))],
  },
  {
    name: 'n8n-nodes-flowhook',
    folder: 'integrations/n8n',
    files: [
      ...below('integrations/n8n', '{api,credentials,nodes}/**/*.ts').map((file) => built(file, '.js')),
      ...below('integrations/n8n', 'icons/*.svg', 'nodes/*/*.node.json').map((file) => `dist/${file}`),
    ],
  },
  {
    name: 'flowhook-zapier',
    folder: 'integrations/zapier',
    files: ['index.js', ...below('integrations/zapier', 'src/*.js')],
  },
];

const tools = await installed(['publint@0.3.25', '@arethetypeswrong/cli@0.18.5']);
const tool = (name: string, ...args: string[]) =>
  run(join(tools.modules, '.bin', name), args).catch(({ stdout, stderr }) =>
    assert.fail(`${stdout}${stderr}`),
  );
const { version } = manifestOf('.');

for (const { name, folder, files } of PACKAGES) {
  test(`the manifest of ${name} says what, where and whose it is`, () => {
    const manifest = manifestOf(folder);
    assert.equal(manifest.name, name);
    assert.equal(manifest.version, version);
    assert.equal(manifest.license, 'MIT');
    assert.equal(manifest.author.name ?? manifest.author, 'The Flowhook authors');
    assert.equal(manifest.bugs, `${REPOSITORY}/issues`);
    assert.ok(manifest.homepage.startsWith(REPOSITORY) && manifest.homepage.endsWith('#readme'));
    assert.ok(manifest.keywords.length > 3 && manifest.description.length > 40);
    assert.equal(manifest.repository.url, `git+${REPOSITORY}.git`);
    assert.equal(manifest.repository.directory, folder === '.' ? undefined : folder);
    assert.deepEqual(manifest.publishConfig, { access: 'public', provenance: true });
    assert.equal(manifest.private, undefined);
  });

  test(`${name} contains the files it needs and nothing else, and publint and attw find no mistake`, async (t) => {
    // The only one that is built with its own packages.
    if (folder === 'integrations/n8n' && !existsSync(join(ROOT, folder, 'node_modules'))) {
      await npm(['ci', '--ignore-scripts'], join(ROOT, folder));
    }
    // The service takes long to build, and package.test.ts does.
    const packed = await pack(folder, emptyDirectory(), { builds: folder !== '.' });
    if (files !== undefined) {
      assert.deepEqual(packed.files, ['LICENSE', 'README.md', 'package.json', ...files].sort());
    }
    await t.test('publint and attw', { skip: tools.skip }, async () => {
      const { stdout } = await tool('publint', 'run', '--strict', '--pack', 'false', packed.tarball);
      assert.match(stdout, /All good!/);
      // All packages are ECMAScript modules, except the one for n8n, which has no types.
      await tool('attw', '--profile', 'esm-only', packed.tarball);
    });
  });
}

function manifestOf(folder: string) {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
}
