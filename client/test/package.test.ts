/** The package is small and uses nothing that only Node has. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { VERSION } from '../src/transport.ts';
import { compiled } from './compiled.ts';

const client = join(import.meta.dirname, '..');
const BUDGET_BYTES = 8_000;

test('the client imports only its own files', () => {
  for (const name of readdirSync(join(client, 'src'))) {
    const text = readFileSync(join(client, 'src', name), 'utf8');
    for (const [, from] of text.matchAll(/\bfrom '([^']+)'|\bimport\('([^']+)'\)/g)) {
      assert.match(from ?? '', /^\.\/[\w-]+\.ts$/, `${name} imports ${from}`);
    }
  }
});

test('the client fits its budget, minified and compressed', async (t) => {
  const made = await build({
    root: client,
    logLevel: 'silent',
    configFile: false,
    build: { write: false, minify: true, lib: { entry: 'src/flowhook-client.ts', formats: ['es'] } },
  });
  const [bundle] = made as { output: { code: string }[] }[];
  const { length } = gzipSync(bundle?.output[0]?.code ?? assert.fail('nothing was built'), { level: 9 });
  t.diagnostic(`${length} bytes`);
  assert.ok(length > 1_000 && length <= BUDGET_BYTES, `${length} bytes, at most ${BUDGET_BYTES}`);
});

/** Globals that browsers lack. Not `Buffer`, which Node's `Response` needs; the compiler would not accept it anyway. */
const OF_NODE = ['process', 'global', 'setImmediate', 'clearImmediate', 'require', 'module'];
const PAGE = `
  const print = globalThis.process.stdout.write.bind(globalThis.process.stdout);
  for (const name of ${JSON.stringify(OF_NODE)}) delete globalThis[name];
  const { Flowhook, verifyWebhook } = await import('./flowhook-client.js');
  const respond = async (url) => new Response(url.includes('/data') ? '{"id":"1"}\\n' : '{"message":"Job queued"}');
  const flowhook = new Flowhook({ url: 'https://flowhook.test', key: 'k', fetch: respond });
  await flowhook.workflows.queue('people');
  const secret = 'whsec_' + btoa('a secret of some length');
  const refused = await verifyWebhook('{}', {
    'webhook-id': 'evt_1', 'webhook-timestamp': '1000', 'webhook-signature': 'v1,AAAA',
  }, { secrets: [secret], nowMs: 1000000 }).catch((error) => error.name);
  print(JSON.stringify([await flowhook.workflows.readAll('people'), refused]));
`;

test('the client runs without globals that browsers lack', (t) => {
  const directory = compiled(t);
  writeFileSync(join(directory, 'page.js'), PAGE);
  const printed = execFileSync(process.execPath, [join(directory, 'page.js')], { encoding: 'utf8' });
  assert.deepEqual(JSON.parse(printed), [[{ id: '1' }], 'NotVerified']);
});

test('`npm pack` builds a package that a project can install and import, and leaves the repository unchanged', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-client-pack-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const copy = join(directory, 'client');
  for (const name of ['src', 'package.json', 'tsconfig.json', 'manifest.ts', 'pack.ts', 'README.md']) {
    cpSync(join(client, name), join(copy, name), { recursive: true });
  }
  for (const name of ['tsconfig.json', 'LICENSE']) cpSync(join(client, '..', name), join(directory, name));
  const tools = join(client, '../node_modules/.bin');
  const npm = (cwd: string, ...args: string[]) =>
    execFileSync('npm', [...args, '--offline', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd,
      encoding: 'utf8',
      env: { ...process.env, PATH: `${tools}${delimiter}${process.env.PATH}` },
    });
  const manifest = readFileSync(join(copy, 'package.json'), 'utf8');
  const packed = npm(copy, 'pack', '--silent').trim().split('\n').at(-1) ?? '';
  assert.equal(readFileSync(join(copy, 'package.json'), 'utf8'), manifest);

  const project = join(directory, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
  npm(project, 'install', '--no-save', join(copy, packed));
  writeFileSync(
    join(project, 'main.js'),
    `import { Flowhook } from 'flowhook-client'; console.log(new Flowhook({ url: 'http://127.0.0.1' }).jobs !== undefined);`,
  );
  const printed = execFileSync(process.execPath, ['main.js'], { cwd: project, encoding: 'utf8' });
  assert.equal(printed, 'true\n');
  const files = readdirSync(join(project, 'node_modules/flowhook-client'));
  assert.deepEqual(files.sort(), ['README.md', 'dist', 'package.json']);
});

test('`VERSION` is the version in package.json', () => {
  const { version } = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8')) as { version: string };
  assert.equal(VERSION, version);
});
