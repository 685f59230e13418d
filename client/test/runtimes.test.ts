/** The published client in each installed runtime, against the real service. `sh test/clients.sh` installs runtimes. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { inPath } from '../../test/support/in-path.ts';
import { startReceiver } from '../../test/support/receiver.ts';
import { startService } from '../../test/support/service.ts';
import { Flowhook } from '../src/flowhook-client.ts';
import { compiled } from './compiled.ts';

const BUDGET_BYTES = 8_000;

/** The program that each runtime runs. Of the runtime, it uses only `console`. */
const PROGRAM = `
import { Conflict, Flowhook, NotFound, Unauthorized, verifyWebhook } from './flowhook-client.js';

const seen = {};
const flowhook = new Flowhook({ url: given.url, key: given.key });
const nameOf = (promise) => promise.then(() => 'none', (error) => [error.name, error.code]);

seen.workflows = (await flowhook.workflows.list({ limit: 1 }).take(9)).map(({ id }) => id);
const { webhookId } = await flowhook.webhooks.subscribe({ workflowId: 'people', url: given.receiver, events: ['*'] });
const news = flowhook.stream({ after: 0 });
const first = news.next();
const { jobId } = await flowhook.workflows.queue('people');
seen.job = (await flowhook.jobs.wait(jobId, { withinMs: 30_000 })).state;
seen.news = typeof (await first).value.kind;
await news.return(undefined);
seen.log = (await Array.fromAsync(flowhook.jobs.followLogs(jobId))).some(({ text }) => text === 'one line of log');
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
const heard = Array.fromAsync(flowhook.events.follow({ signal: abort.signal }));
abort.abort(new Error('enough'));
seen.aborted = await heard.catch((error) => error.message);
seen.late = await nameOf(new Flowhook({ url: given.silent, timeoutMs: 50, retries: 0 }).me());
seen.moved = await nameOf(new Flowhook({ url: given.moved, key: 'k' }).me());

seen.unsubscribed = (await flowhook.webhooks.unsubscribe(webhookId)).message.includes(webhookId);
seen.verified = [];
for (const trust of [{ secrets: [given.secret] }, { publicKeys: [given.publicKey] }]) {
  seen.verified.push((await verifyWebhook(given.message.text, given.message.headers, trust)).type);
  seen.verified.push(await nameOf(verifyWebhook(given.message.text + ' ', given.message.headers, trust)));
}
seen.classes = [NotFound, Unauthorized, Conflict].every((one) => one.prototype instanceof Error);
console.log(JSON.stringify(seen));
`;

/** How each runtime runs a file that may only use the network. */
const RUNTIMES = [
  { name: 'node', file: process.execPath, args: [] },
  {
    name: 'deno',
    file: inPath('deno'),
    args: ['run', '--no-prompt', '--no-lock', '--no-config', '--allow-net'],
  },
  { name: 'bun', file: inPath('bun'), args: ['run'] },
];

for (const { name, file, args } of RUNTIMES) {
  const skip = file === undefined && `${name} is not in PATH: sh test/clients.sh`;
  test(`the published client works in ${name}`, { skip }, async (t) => {
    const directory = compiled(t);
    const given = await start(t);
    writeFileSync(join(directory, 'use.js'), `const given = ${JSON.stringify(given)};\n${PROGRAM}`);
    const command = [...args, join(directory, 'use.js')];
    const { stdout } = await promisify(execFile)(file ?? '', command, { timeout: 60_000 });
    assert.deepEqual(JSON.parse(stdout), {
      workflows: ['inbox', 'people', 'slow'],
      job: 'finished',
      news: 'string',
      log: true,
      records: [{ id: '1', name: 'Zoë ☂' }, { id: '2' }],
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

test('a bundle for browsers contains nothing of Node and fits the budget', {
  skip: inPath('bun') === undefined && 'bun is not in PATH: sh test/clients.sh',
}, (t) => {
  const directory = compiled(t);
  const entry = join(directory, 'flowhook-client.js');
  const bundle = execFileSync('bun', ['build', '--target=browser', '--minify', entry], { encoding: 'utf8' });
  assert.doesNotMatch(bundle, /node:|\brequire\(|\bprocess\.|\bBuffer\b|^import /m);
  const { length } = gzipSync(bundle, { level: 9 });
  t.diagnostic(`${length} bytes`);
  assert.ok(length <= BUDGET_BYTES, `${length} bytes, at most ${BUDGET_BYTES}`);
});

/** A service, and one of its webhook requests with the keys that verify it. */
async function start(t: TestContext) {
  const service = await startService({
    workflows: {
      'default/inbox.yaml': 'source: { type: push }\n',
      'default/people.yaml': `source: { type: command, command: [sh, -c, 'echo one line of log >&2; echo ''{"id":1,"name":"Zoë ☂"}''; echo ''{"id":2}'''] }\n`,
      'default/slow.yaml': 'source: { type: command, command: [sleep, "600"] }\n',
    },
  });
  const receiver = await startReceiver();
  t.after(async () => {
    await service.stop();
    await receiver.stop();
  });
  const flowhook = new Flowhook({ url: service.url, key: service.key });
  const { id } = await flowhook.webhooks.subscribeToAll({ url: receiver.url, events: ['webhook_test'] });
  const secret = await flowhook.webhooks.secret(id);
  await flowhook.webhooks.test(id);
  await receiver.until(({ length }) => length > 0, 'the test');
  const [message] = receiver.received;
  const [publicKey] = await flowhook.signingKeys();
  await flowhook.webhooks.unsubscribe(id);
  return {
    url: service.url,
    key: service.key,
    receiver: receiver.url,
    ...(await startOthers(t)),
    secret,
    publicKey: publicKey?.key,
    message: { text: message?.text, headers: message?.headers },
  };
}

/** Two fake services: one never responds, one redirects. */
async function startOthers(t: TestContext): Promise<{ silent: string; moved: string }> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/moved') === true) response.writeHead(302, { location: '/silent' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { silent: `${url}/silent`, moved: `${url}/moved` };
}
