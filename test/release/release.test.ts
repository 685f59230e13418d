/** The commands that make a release: `toolchain/release.ts`. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { releasesIn, unreleasedIn } from '../../toolchain/changelog.ts';
import { PACKAGES, PLACES, versionOf } from '../../toolchain/versions.ts';
import { DIGESTS, digests } from '../support/store/frozen-schemas.ts';

const ROOT = join(import.meta.dirname, '../..');
const version = versionOf(ROOT);
const changelogOf = (root: string) => readFileSync(join(root, 'CHANGELOG.md'), 'utf8');

/** Runs a command, and returns what it printed. */
async function release(args: string[], { root = ROOT, env = {} } = {}): Promise<string> {
  const program = join(ROOT, 'toolchain', 'release.ts');
  const options = { cwd: root, env: { ...process.env, ...env, RELEASE_ROOT: root } };
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], options);
  return stdout;
}

/** A copy of the files that name a version, in which all migrations are frozen. */
function copy(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'flowhook-release-test-'));
  t.after(() => rmSync(root, { recursive: true }));
  const files = globSync(['CHANGELOG.md', ...PLACES.map(([pattern]) => pattern)], { cwd: ROOT });
  for (const file of files) cpSync(join(ROOT, file), join(root, file));
  freeze(root, digests());
  return root;
}

function freeze(root: string, migrations: Record<string, string>): void {
  const file = join(root, relative(ROOT, DIGESTS));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(migrations));
}

function edit(root: string, file: string, from: string | RegExp, to: string): void {
  const text = readFileSync(join(root, file), 'utf8');
  assert.ok(text.search(from) >= 0);
  writeFileSync(join(root, file), text.replace(from, to));
}

function writeUnreleased(root: string, text: string): void {
  edit(root, 'CHANGELOG.md', /^## Unreleased\n.*?(?=^## )/ms, `## Unreleased\n\n${text}\n\n`);
}

test('this version can be released: versions and changelog agree', async () => {
  assert.equal(await release(['check']), `${version} can be released\n`);
});

test('without a command, and with --help, it lists its commands', async () => {
  const help = await release([]);
  assert.equal(await release(['--help']), help);
  for (const name of ['cut', 'check', 'pack', 'sums', 'notes', 'publish']) {
    assert.match(help, new RegExp(`^  ${name} .+`, 'm'));
  }
});

test('a directory without a release is refused in a sentence', async () => {
  for (const command of ['sums', 'publish']) {
    await assert.rejects(release([command, '/nowhere']), ({ stderr }) => {
      assert.match(
        stderr,
        /^There is no release in \/nowhere: make it with `npm run release pack \/nowhere`\n$/,
      );
      return true;
    });
  }
});

test('a tag that does not fit is refused with everything that is wrong', async (t) => {
  const root = copy(t);
  edit(root, 'client/package.json', `"version": "${version}"`, '"version": "0.0.9"');
  writeUnreleased(root, '- A change.');
  const { 'sqlite/0001_initial.sql': _, ...frozen } = digests();
  freeze(root, frozen);
  await assert.rejects(release(['check', 'v9.9.9'], { root }), ({ stderr }) => {
    assert.equal(
      stderr,
      `client/package.json names version 0.0.9, but package.json has ${version}\n` +
        `The tag must be v${version}, found v9.9.9\n` +
        'CHANGELOG.md has changes under "Unreleased": move them into the section\n' +
        'sqlite/0001_initial.sql is not frozen: run `node test/support/store/freeze-schema.ts`\n',
    );
    return true;
  });
});

test('cutting a release writes its version everywhere, and moves the changes into a section with a date', async (t) => {
  const root = copy(t);
  await assert.rejects(release(['cut', 'next'], { root }), /next is not a version such as 1\.2\.3/);
  writeUnreleased(root, '');
  await assert.rejects(release(['cut', '7.8.9'], { root }), /no changes under "Unreleased"/);
  writeUnreleased(root, '- A change.');
  await release(['cut', '7.8.9'], { root });
  assert.equal(unreleasedIn(changelogOf(root)), '');
  const [newest, before] = releasesIn(changelogOf(root));
  assert.deepEqual([newest?.version, newest?.text], ['7.8.9', '- A change.']);
  assert.equal(newest?.date, new Date().toISOString().slice(0, 10));
  assert.deepEqual(before, releasesIn(changelogOf(ROOT))[0]);
  assert.equal(await release(['check', 'v7.8.9'], { root }), 'v7.8.9 can be released\n');
});

test('the notes of a release are its section, with links that work on other pages', async () => {
  const notes = await release(['notes']);
  assert.match(notes, /^The first release\. /);
  const links = [...notes.matchAll(/\]\(([^)]*)\)/g)].map(([, link]) => link ?? '');
  assert.ok(links.length > 3);
  for (const link of links) assert.match(link, new RegExp(`^https://.+/blob/v${version}/\\w`));
  await assert.rejects(release(['notes', '6.6.6']), /CHANGELOG\.md has no section for 6\.6\.6/);
});

test('publishing sends the packages that the registry does not have yet, with the token', async (t) => {
  const root = copy(t);
  const tarballs = join(root, 'tarballs');
  mkdirSync(tarballs);
  const folders = PACKAGES.map((path) => {
    const { name } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'));
    const folder = join(root, 'packed', name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version }));
    return folder;
  });
  const pack = ['pack', '--silent', '--pack-destination', tarballs, ...folders];
  await promisify(execFile)('npm', pack, { cwd: dirname(tarballs) });
  const registry = await startRegistry(t);
  const env = { npm_config_registry: registry.url, NPM_TOKEN: 'secret-token' };
  const publish = () => release(['publish', tarballs, '--provenance=false'], { root, env });
  registry.published.set('flowhook', { versions: { [version]: { name: 'flowhook', version } } });
  assert.match(await publish(), new RegExp(`^flowhook@${version} is published already\n`));
  assert.deepEqual([...registry.published.keys()].sort(), [
    'flowhook',
    'flowhook-client',
    'flowhook-zapier',
    'n8n-nodes-flowhook',
  ]);
  assert.deepEqual([...registry.tokens], ['Bearer secret-token']);
  assert.equal((await publish()).match(/is published already/g)?.length, 4);
});

/** A registry that keeps what it is sent. `tokens` are those of requests that publish. */
async function startRegistry(t: TestContext) {
  const published = new Map<string, object>();
  const tokens = new Set<string | undefined>();
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent((request.url ?? '').slice(1));
    if (request.method === 'PUT') {
      tokens.add(request.headers.authorization);
      published.set(name, JSON.parse(await textOf(request)));
    }
    const found = published.get(name);
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? { error: 'not found' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, published, tokens };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}
