/** What every installation of the service must be able to do. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { site } from '../jobs/source-site.ts';
import { startReceiver } from '../receiver.ts';
import { startServerProcess } from '../server-process.ts';
import { launchOf } from './launch.ts';

const KEY = 'key-of-the-installed-service';

/**
 * Runs a command of the program, and returns what it printed.
 *
 * @throws Error with its output if it fails
 */
export async function runInstalled(
  program: string,
  args: readonly string[],
  { directory, settings = {} }: { directory: string; settings?: Record<string, string> },
): Promise<string> {
  const launch = launchOf(program);
  const { stdout } = await promisify(execFile)(launch.file, [...launch.args, ...args], {
    cwd: directory,
    env: { ...launch.environment, ...settings },
  });
  return stdout;
}

/**
 * Runs every kind of source, delivers webhooks, serves dashboard and guide, accepts a push, makes a backup, runs
 * commands, and keeps its records when it is killed.
 *
 * @param directory where `workflows` and `data` are created
 */
export async function tryInstalledService(
  t: TestContext,
  { program, directory }: { program: string; directory: string },
): Promise<void> {
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const workflows = join(directory, 'workflows');
  await mkdir(join(workflows, 'default'), { recursive: true });
  const put = (name: string, text: string) => writeFile(join(workflows, 'default', name), text);
  await put('command.yaml', `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`);
  await put('module.mts', 'export default async function* () { yield { id: 1 as number }; }\n');
  await put('pushed.yaml', 'source: { type: push }\n');
  const { url } = await site(t, { '/': [{ id: 1 }] });
  await put('http.yaml', `source: { type: http, url: '${url}/' }\n`);
  const ids = ['command', 'http', 'module', 'pushed'];

  const settings = { FLOWHOOK_DATA: join(directory, 'data'), FLOWHOOK_WORKFLOWS: workflows };
  const start = async () => {
    const server = await startServerProcess(
      { ...settings, FLOWHOOK_BOOTSTRAP_KEY: KEY, FLOWHOOK_DASHBOARD: 'on' },
      { program, directory },
    );
    t.after(() => server.kill());
    return server;
  };
  let server = await start();
  const call = (method: string, path: string, body?: object) =>
    fetch(server.url + path, {
      method,
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const assertRecords = async () => {
    for (const id of ids) {
      assert.deepEqual(await (await call('GET', `/v1/workflows/${id}/data`)).json(), [{ id: '1' }], id);
    }
  };
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
  assert.equal((await call('POST', '/v1/workflows/pushed/push', [{ id: 1 }])).status, 200);
  await assertRecords();

  const page = await (await fetch(`${server.url}/ui/`)).text();
  const script = await fetch(server.url + /src="(\/ui\/assets\/[^"]+\.js)"/.exec(page)?.[1]);
  assert.deepEqual([script.status, script.headers.get('content-encoding')], [200, 'gzip']);
  assert.match(await (await fetch(`${server.url}/docs/guide/`)).text(), /<h1[^>]*>Flowhook</);
  assert.doesNotMatch(server.output(), /(dashboard|guide)\.(build_started|not_built)/);

  const command = (...args: string[]) => runInstalled(program, args, { directory, settings });
  // With `--url` the command calls the server; without, it opens the database.
  const listed = await command('workflows', 'list', '--json', '--url', server.url, '--key', KEY);
  assert.deepEqual(
    JSON.parse(listed).map(({ id }: { id: string }) => id),
    ids,
  );
  await command('backup', 'create');
  await command('backup', 'verify');

  await server.kill();
  server = await start();
  await assertRecords();
  assert.equal(await server.stop(), 0, server.output());
}
