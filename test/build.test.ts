/** What `npm run build` makes runs by itself: without sources, with every kind of child. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { site } from '../src/workflows/sources/http/trial-site.ts';
import { startReceiver } from './support/receiver.ts';
import { startServerProcess } from './support/server-process.ts';

const root = join(import.meta.dirname, '..');
const KEY = 'key-of-the-built-service';

test('the built service runs every kind of source, tells a webhook, and has its dashboard', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-build-'));
  const receiver = await startReceiver();
  await promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: root });
  for (const part of ['bin', 'dist', 'dashboard/dist', 'package.json']) {
    await cp(join(root, part), join(directory, 'installed', part), { recursive: true });
  }
  await symlink(join(root, 'node_modules'), join(directory, 'installed', 'node_modules'));
  const workflows = join(directory, 'workflows');
  await mkdir(join(workflows, 'default'), { recursive: true });
  await writeFile(
    join(workflows, 'default', 'command.yaml'),
    `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
  );
  await writeFile(
    join(workflows, 'default', 'module.mts'),
    'export default async function* () { yield { id: 1 }; }\n',
  );

  const { url } = await site(t, { '/': [{ id: 1 }] });
  await writeFile(join(workflows, 'default', 'http.yaml'), `source: { type: http, url: '${url}/' }\n`);

  const server = await startServerProcess(
    {
      FLOWHOOK_DATA: join(directory, 'data'),
      FLOWHOOK_WORKFLOWS: workflows,
      FLOWHOOK_BOOTSTRAP_KEY: KEY,
      FLOWHOOK_DASHBOARD: 'on',
    },
    { program: join(directory, 'installed', 'bin', 'flowhook.js') },
  );
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
  await receiver.until((received) => received.length === 3, 'all ends');
  assert.deepEqual(
    receiver.received.map(({ event }) => event.type),
    ['workflow_finished', 'workflow_finished', 'workflow_finished'],
  );
  for (const workflowId of ['module', 'http']) {
    assert.deepEqual(await (await call('GET', `/v1/workflows/${workflowId}/data`)).json(), [{ id: '1' }]);
  }
  const page = await (await fetch(`${server.url}/ui/`)).text();
  const script = await fetch(server.url + /src="(\/ui\/assets\/[^"]+\.js)"/.exec(page)?.[1]);
  assert.deepEqual([script.status, script.headers.get('content-encoding')], [200, 'gzip']);
  assert.doesNotMatch(server.output(), /dashboard\.(build_begun|not_built)/);
  assert.equal(await server.stop(), 0, server.output());
  await receiver.stop();
  await rm(directory, { recursive: true, force: true });
});
