/** A service that is started as root and runs its sources as a different user. */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findRunAs } from '../../src/sources/process/environment.ts';
import { makeInstallation } from '../support/cli/examined.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const skip = process.getuid?.() === 0 ? false : 'only root can run sources as a different user';

test('runs commands and modules as the user in FLOWHOOK_RUN_AS', { skip }, async (t) => {
  const found = findRunAs('nobody');
  if ('mistake' in found) return t.skip('the user nobody does not exist');
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-run-as-'));
  t.after(() => rmSync(directory, { recursive: true }));
  chmodSync(directory, 0o755);
  const service = await startService({
    directory,
    settings: { FLOWHOOK_RUN_AS: 'nobody' },
    workflows: {
      'default/command.yaml':
        'source: { type: command, command: [sh, -c, "printf \'{\\"id\\":\\"%s\\"}\' $(id -u)"] }\n',
      'default/module.mts': 'export default async function* () { yield { id: process.getuid?.() }; }\n',
    },
  });
  t.after(() => service.stop());
  for (const id of ['command', 'module']) {
    const queued = await service.call('POST', `/v1/workflows/${id}/queue`);
    const jobId = queued.headers.get('x-job-id');
    const job = await until(`${id} has ended`, async () => {
      const { body } = await service.call('GET', `/v1/jobs/${jobId}`);
      const { finishedAt, state, error } = body as { finishedAt: unknown; state: string; error: unknown };
      return finishedAt === null ? undefined : { state, error };
    });
    assert.deepEqual(job, { state: 'finished', error: null });
    const { body } = await service.call('GET', `/v1/workflows/${id}/data`);
    assert.deepEqual(body, [{ id: String(found.uid) }]);
  }
});

test('doctor reports which files of the service this user can read', { skip }, async (t) => {
  if ('mistake' in findRunAs('nobody')) return t.skip('the user nobody does not exist');
  const { directory, data, configure, find } = await makeInstallation(t);
  assert.equal((await find('run-as')).status, 'ok');
  chmodSync(directory, 0o755);
  mkdirSync(join(directory, 'workflows'), { recursive: true });
  chmodSync(join(directory, 'workflows'), 0o755);
  const settings = configure({ FLOWHOOK_RUN_AS: 'nobody' });
  const closed = await find('run-as', { settings });
  assert.equal(closed.status, 'ok', closed.what);
  assert.match(closed.what, /^Sources run as nobody, who cannot read/);
  chmodSync(data, 0o755);
  const open = await find('run-as', { settings });
  assert.equal(open.status, 'error');
  assert.match(open.what, new RegExp(`nobody, who can read ${data}$`));
  chownSync(join(directory, 'workflows'), 1, 1);
  chmodSync(join(directory, 'workflows'), 0o700);
  assert.match((await find('run-as', { settings })).what, /may not enter or run/);
});
