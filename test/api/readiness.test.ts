/** Readiness, and the checks that it depends on. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { startService } from '../support/service.ts';

const service = await startService();
after(() => service.stop());

const ask = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(service.url + path, { headers });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: answer.status, body: isJson ? JSON.parse(text) : text };
};
const statuses = (checks: { name: string; status: string }[]) =>
  Object.fromEntries(checks.map(({ name, status }) => [name, status]));

const WELL = {
  started: 'ok',
  database: 'ok',
  migrations: 'ok',
  api: 'noted',
  jobs: 'noted',
  deliveries: 'noted',
  load: 'noted',
};

test('is ready, and lists the checks with `?verbose`', async () => {
  assert.deepEqual(await ask('/livez'), { status: 200, body: { status: 'ok' } });
  assert.deepEqual(await ask('/readyz'), { status: 200, body: { status: 'ok' } });
  const verbose = await ask('/readyz?verbose');
  assert.deepEqual([verbose.status, verbose.body.status], [200, 'ok']);
  assert.deepEqual(statuses(verbose.body.checks), WELL);
  const { body: text } = await ask('/readyz?verbose=1', { accept: 'text/plain' });
  assert.match(text, /^ok {5}started {4}Started, and not stopping\nok {5}database {3}Responds\n/);
});

test('is not ready if its database is replaced by an older one', async () => {
  const file = new DatabaseSync(join(service.directory, 'data', 'flowhook.db'), { timeout: 60_000 });
  const { user_version: version } = file.prepare('pragma user_version').get() as { user_version: number };
  file.exec(`pragma user_version = ${version - 1}`);
  const sentence =
    `The schema is at version ${version - 1}, but this flowhook needs ${version}: the database was replaced by an ` +
    'older one. Restart the service to migrate it';
  assert.deepEqual(await ask('/readyz'), { status: 503, body: { error: sentence } });
  const { status, body } = await ask('/readyz?verbose');
  assert.deepEqual([status, body.status, body.error], [503, 'unavailable', sentence]);
  assert.deepEqual(statuses(body.checks), { ...WELL, migrations: 'failed' });
  file.exec(`pragma user_version = ${version}`);
  file.close();
  assert.equal((await ask('/readyz')).status, 200);
});

test('is not ready without a database, but alive', async () => {
  await service.store.close();
  assert.equal((await ask('/readyz')).status, 503);
  const { status, body } = await ask('/readyz?verbose', { accept: 'text/plain' });
  assert.equal(status, 503);
  assert.match(body, /^ok {5}started .*\nfailed database /);
  assert.ok(!body.includes(service.directory));
  assert.deepEqual(await ask('/livez'), { status: 200, body: { status: 'ok' } });
});
