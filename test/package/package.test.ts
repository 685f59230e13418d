/** The package works when it is installed in an empty directory: sources, webhooks, pages, commands, the contract. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { delimiter, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { installPackage } from '../support/cli/installation.ts';
import { tryInstalledService } from '../support/cli/installed-service.ts';
import { terminal } from '../support/cli/newcomer.ts';
import { emptyDirectory } from '../support/package/packed.ts';

const root = join(import.meta.dirname, '..', '..');
const run = promisify(execFile);

const installation = await installPackage();
const { directory, program, files, newcomer } = installation;
// As npx sets PATH, with the Node that npm has installed in front.
const bin = join(directory, 'node_modules', '.bin');
Object.assign(process.env, newcomer, { PATH: `${bin}${delimiter}${newcomer.PATH}` });

/** Without Node, which npm installs as an optional dependency. */
const MAX_UNPACKED_BYTES = 8_000_000;
/** The files that may be in the package. */
const ALLOWED = [
  /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|compose\.yaml)$/,
  /^bin\/(flowhook\.js|compile-cache\.cjs|other-node\.js)$/,
  /^dist\/([\w-]+\.cjs|LICENSES\.txt)$/,
  /^src\/store\/migrations\/\d{4}_\w+\.sql$/,
  /^src\/sources\/context\.d\.ts$/,
  /^dashboard\/dist\/[^.].*$/,
  /^dashboard\/dist\/\.sources$/,
  /^site\/dist\/([\w-]+\/)*[\w-]+\.(png|txt|(html|css|js|svg|yaml|json)\.br)$/,
  /^site\/dist\/index\.html$/,
  /^site\/dist\/\.sources$/,
  /^templates\//,
];

test('the package contains the program, its types and its documentation, and no tests', async (t) => {
  t.diagnostic(`${installation.bytes.packed} bytes packed, ${installation.bytes.unpacked} unpacked`);
  assert.deepEqual(
    files.filter((file) => !ALLOWED.some((pattern) => pattern.test(file))),
    [],
  );
  assert.deepEqual(
    files.filter((file) => /\btests?\b/.test(file)),
    [],
  );
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  for (const file of [...Object.values<string>(manifest.bin), manifest.exports['./workflow'].types]) {
    assert.ok(files.includes(file.replace(/^\.\//, '')), `${file} is named in package.json, but not packed`);
  }
  for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) {
    assert.equal(manifest.scripts[script], undefined, `${script} would run during the installation`);
  }
});

test('the package without Node unpacks to at most 8 MB', () => {
  const { unpacked } = installation.bytes;
  assert.ok(unpacked <= MAX_UNPACKED_BYTES, `${unpacked} bytes`);
});

test('the bundle imports only its own files and modules of Node', async () => {
  const missing: string[] = [];
  for (const file of files.filter((name) => /^dist\/.+\.cjs$/.test(name))) {
    const text = await readFile(join(directory, 'node_modules', 'flowhook', file), 'utf8');
    for (const [, name = ''] of text.matchAll(/(?<!\{ ?)\b(?:import|require)\("([^"]+)"\)/g)) {
      // `pg` loads it only if it is installed.
      if (name === 'pg-native') continue;
      if (!isBuiltin(name) && !files.includes(join(file, '..', name))) missing.push(`${file}: ${name}`);
    }
  }
  assert.deepEqual(missing, []);
});

test('npm installs two packages: the service, and Node for this platform', async () => {
  const found = (await readdir(join(directory, 'node_modules'))).filter((name) => !name.startsWith('.'));
  const { optionalDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const [node = ''] = found.filter((name) => name in optionalDependencies);
  assert.deepEqual(found, ['flowhook', node]);
  assert.deepEqual(await readdir(bin), ['flowhook', 'node']);
});

for (const [what, line] of Object.entries({
  'the installed package': 'npx flowhook serve',
  'the tarball': `npx --yes ./${installation.tarball} serve`,
})) {
  test(`npx runs ${what} with the machine's own npm, and Ctrl-C stops it`, async (t) => {
    const environment = { ...newcomer, FLOWHOOK_PORT: '0', FLOWHOOK_DATA: join(directory, what) };
    // `init` prints how it was called.
    const init = await terminal(t, line.replace(/serve$/, 'init'), { directory, environment }).ended;
    assert.ok(init.stderr.includes(`\n  ${line} `), init.stderr);
    await rm(join(directory, 'workflows'), { recursive: true });

    const npx = terminal(t, line, { directory, environment });
    let printed = '';
    npx.process.stdout?.on('data', (text) => {
      printed += text;
    });
    await npx.says(/^flowhook listening on http\S+\n/m, 'stdout');
    const url = /^flowhook listening on (\S+)$/m.exec(printed)?.[1];
    const key = /^key: (\S+)$/m.exec(printed)?.[1] ?? '';
    const { status } = await fetch(`${url}/v1/jobs`, { headers: { 'x-api-key': key } });
    assert.equal(status, 200, printed);
    npx.interrupt();
    const { stdout, stderr } = await npx.ended;
    assert.match(stdout + stderr, /flowhook has stopped/);
  });
}

test("a global installation runs on the machine's own Node, and SIGTERM stops it", async (t) => {
  // Not below the first installation, whose Node would be found.
  const prefix = emptyDirectory();
  // With another prefix, npm would not read the settings of the machine.
  const { stdout: settings } = await run('npm', ['config', 'get', 'globalconfig'], { env: newcomer });
  const options = ['--global', '--prefix', prefix, '--globalconfig', settings.trim()];
  await run('npm', ['install', ...options, `./${installation.tarball}`], { cwd: directory, env: newcomer });
  const program = join(prefix, 'bin', 'flowhook');
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const { stdout } = await run(program, ['--version'], { env: newcomer });
  assert.equal(stdout.trim(), version);
  const init = await run(program, ['init'], { cwd: emptyDirectory(), env: newcomer });
  assert.match(init.stderr, /^ {2}flowhook serve /m);
  const usage = await run(program, ['nonsense'], { env: newcomer }).catch((error) => error);
  assert.equal(usage.code, 2, 'the exit code is that of the program');

  const environment = { ...newcomer, FLOWHOOK_PORT: '0', FLOWHOOK_DATA: join(directory, 'of-global') };
  const server = terminal(t, `exec '${program}' serve`, { directory, environment });
  await server.says(/^flowhook listening on http/m, 'stdout');
  server.process.kill('SIGTERM');
  const ended = await server.ended;
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stdout + ended.stderr, /flowhook has stopped/);
});

test('without optional packages, an old Node says where to get Node 26', async (t) => {
  const { stdout: own } = await run('node', ['--version'], { env: newcomer });
  if (Number.parseInt(own.slice(1), 10) >= 26) return t.skip(`the Node of this machine is ${own}`);
  const alone = emptyDirectory();
  const tarball = join(directory, installation.tarball);
  await run('npm', ['install', '--omit=optional', tarball], { cwd: alone, env: newcomer });
  const program = join(alone, 'node_modules', '.bin', 'flowhook');
  const { code, stderr } = await run(program, ['--version'], { env: newcomer }).catch((error) => error);
  assert.equal(code, 1);
  assert.match(stderr, /^flowhook requires Node 26 or later, found \d.*--omit=optional\.\n$/);
});

test('the types of flowhook/workflow check modules', async () => {
  const check = (name: string) =>
    run(
      process.execPath,
      [
        join(root, 'node_modules/typescript/bin/tsc'),
        ...['--noEmit', '--strict', '--skipLibCheck', '--target', 'esnext', '--module', 'nodenext'],
        ...['--lib', 'esnext,dom', '--types', '', name],
      ],
      { cwd: directory },
    );
  const module = (call: string) =>
    "import type { Context } from 'flowhook/workflow';\n" +
    `export default async function* (ctx: Context) {\n  yield { id: ${call} };\n}\n`;
  await writeFile(join(directory, 'right.mts'), module("ctx.secret('TOKEN').length"));
  await writeFile(join(directory, 'wrong.mts'), module("ctx.secrets('TOKEN')"));
  await check('right.mts');
  await assert.rejects(check('wrong.mts'), ({ stdout }) => /'secrets' does not exist/.test(stdout));
});

test('a command writes to the compile cache', async () => {
  const cache = join(directory, 'compiled');
  const env = { ...process.env, NODE_COMPILE_CACHE: cache };
  await run(program, ['config', 'print'], { cwd: directory, env });
  assert.ok((await readdir(cache, { recursive: true })).length > 10);
});

test('the installed service works', (t) => tryInstalledService(t, { program, directory }));

// The contract tests use the installed program instead of the repository's.
process.env.FLOWHOOK_TEST_PROGRAM = program;
await import('../contract/contract.test.ts');

after(() => installation.remove());
