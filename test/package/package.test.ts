/** The package works when it is installed in an empty directory: sources, webhooks, pages, commands, the contract. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { installPackage } from '../support/cli/installation.ts';
import { site } from '../support/jobs/source-site.ts';
import { startReceiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';

const root = join(import.meta.dirname, '..', '..');
const run = promisify(execFile);
const KEY = 'key-of-the-installed-service';

const installation = await installPackage();
const { directory, program, files } = installation;

/** Without Node, which npm installs as an optional dependency. */
const MAX_UNPACKED_BYTES = 8_000_000;
/** The files that may be in the package. */
const ALLOWED = [
  /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|compose\.yaml)$/,
  /^bin\/(flowhook|compile-cache)\.js$/,
  /^dist\/([\w-]+\.js|LICENSES\.txt)$/,
  /^src\/store\/migrations\/\d{4}_\w+\.sql$/,
  /^src\/sources\/context\.d\.ts$/,
  /^dashboard\/dist\/[^.].*$/,
  /^dashboard\/dist\/\.sources$/,
  /^site\/dist\/([\w-]+\/)*[\w-]+\.(html|css|js|png|svg|yaml|json)$/,
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
  for (const file of files.filter((name) => /^dist\/.+\.js$/.test(name))) {
    const text = await readFile(join(directory, 'node_modules', 'flowhook', file), 'utf8');
    for (const [, from, called] of text.matchAll(
      /^(?:import|export)\b.*\bfrom "([^"]+)";$|(?<!\{ ?)\bimport\("([^"]+)"\)/gm,
    )) {
      const name = from ?? called ?? '';
      if (!isBuiltin(name) && !files.includes(join(file, '..', name))) missing.push(`${file}: ${name}`);
    }
  }
  assert.deepEqual(missing, []);
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
  await run(process.execPath, [program, 'config', 'print'], { cwd: directory, env });
  assert.ok((await readdir(cache, { recursive: true })).length > 10);
});

test('runs every kind of source, delivers webhooks, serves dashboard and guide, and supports commands', async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const workflows = join(directory, 'workflows');
  await mkdir(join(workflows, 'default'), { recursive: true });
  const put = (name: string, text: string) => writeFile(join(workflows, 'default', name), text);
  await put('command.yaml', `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`);
  await put('module.mts', 'export default async function* () { yield { id: 1 as number }; }\n');
  const { url } = await site(t, { '/': [{ id: 1 }] });
  await put('http.yaml', `source: { type: http, url: '${url}/' }\n`);

  const server = await startServerProcess(
    {
      FLOWHOOK_DATA: join(directory, 'data'),
      FLOWHOOK_WORKFLOWS: workflows,
      FLOWHOOK_BOOTSTRAP_KEY: KEY,
      FLOWHOOK_DASHBOARD: 'on',
    },
    { program },
  );
  t.after(() => server.kill());
  const call = (method: string, path: string, body?: object) =>
    fetch(server.url + path, {
      method,
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  for (const workflowId of ['command', 'module', 'http']) {
    const events = ['workflow_finished', 'workflow_failed'];
    await call('POST', '/v1/integrations/webhooks/subscribe', {
      workflowId,
      webhookUrl: receiver.url,
      events,
    });
    assert.equal((await call('POST', `/v1/workflows/${workflowId}/queue`)).status, 200);
  }
  await receiver.until((received) => received.length === 3, 'the ends of all jobs');
  assert.deepEqual(
    receiver.received.map(({ event }) => event.type),
    ['workflow_finished', 'workflow_finished', 'workflow_finished'],
    JSON.stringify(receiver.received),
  );
  for (const workflowId of ['module', 'http']) {
    assert.deepEqual(await (await call('GET', `/v1/workflows/${workflowId}/data`)).json(), [{ id: '1' }]);
  }
  const page = await (await fetch(`${server.url}/ui/`)).text();
  const script = await fetch(server.url + /src="(\/ui\/assets\/[^"]+\.js)"/.exec(page)?.[1]);
  assert.deepEqual([script.status, script.headers.get('content-encoding')], [200, 'gzip']);
  assert.match(await (await fetch(`${server.url}/docs/guide/`)).text(), /<h1[^>]*>Flowhook</);
  assert.doesNotMatch(server.output(), /(dashboard|guide)\.(build_started|not_built)/);
  // This command uses the client, which is a separate package in the repository.
  const ask = ['workflows', 'list', '--json', '--url', server.url, '--key', KEY];
  const { stdout } = await run(process.execPath, [program, ...ask], { cwd: directory });
  assert.deepEqual(
    JSON.parse(stdout).map(({ id }: { id: string }) => id),
    ['command', 'http', 'module'],
  );
  assert.equal(await server.stop(), 0, server.output());
});

// The contract tests use the installed program instead of the repository's.
process.env.FLOWHOOK_TEST_PROGRAM = program;
await import('../contract/contract.test.ts');

after(() => installation.remove());
