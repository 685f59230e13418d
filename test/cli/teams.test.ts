/** `flowhook teams delete` as a separate process. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../support/cli/commands.ts';
import { makePlace } from '../support/cli/place.ts';
import { startServerProcess } from '../support/server-process.ts';

const WORKFLOWS = {
  'acme/people.yaml': `source: { type: command, command: [printf, '{"id":1}\\n{"id":2}\\n'] }\n`,
  'other/people.yaml': `source: { type: command, command: [printf, '{"id":9}\\n'] }\n`,
};
const SLOW = { 'acme/slow.yaml': 'source: { type: command, command: [sleep, "600"] }\n' };

test('a team is exported and deleted, and other teams are not changed', async (t) => {
  const { directory, environment, run } = await makePlace(t, WORKFLOWS);
  for (const team of ['acme', 'other']) assert.equal((await run('run', `${team}/people`, '--wait')).code, 0);
  const both = await run('run', 'acme/people', '--team', 'other');
  assert.deepEqual([both.code, /of the team acme, but --team is other/.test(both.stderr)], [2, true]);
  await run('webhooks', 'subscribe', 'acme/people', 'https://example.com/hook');
  const { stdout: key } = await run('keys', 'create', '--team', 'acme');
  assert.match(key, /^fh_/);

  const asked = await run('teams', 'delete', 'acme');
  assert.equal(asked.code, 2);
  assert.match(
    asked.stderr,
    /1 workflow, 1 webhook, 1 key\. Standard input is not a terminal, so this command cannot ask for confirmation, and nothing was deleted\. Confirm with --yes\n$/,
  );
  const unknown = await run('teams', 'delete', 'acne', '--yes');
  assert.deepEqual([unknown.code, /Did you mean "acme"\?/.test(unknown.stderr)], [3, true]);

  const args = ['teams', 'delete', 'acme', '--export', 'kept', '--json'];
  const typed = (input: string) =>
    runCommand(args, { directory, environment, input, terminal: { columns: 100 } });
  const mistyped = await typed('acne\n');
  assert.equal(mistyped.code, 2);
  assert.match(mistyped.stderr, /Type acme to continue: .*You did not confirm, so nothing was deleted/s);
  const deleted = await typed('acme\n');
  assert.equal(deleted.code, 0, deleted.stderr);
  assert.equal((JSON.parse(deleted.stdout) as { exported: string }).exported, 'kept');
  const read = (name: string) => readFile(join(directory, 'kept', name), 'utf8');
  assert.equal(await read('data/people.ndjson'), '{"id":"1"}\n{"id":"2"}\n');
  assert.equal((JSON.parse(await read('workflows/people.json')) as { mode: string }).mode, 'replace');
  const [webhook] = JSON.parse(await read('webhooks.json')) as { url: string }[];
  assert.equal(webhook?.url, 'https://example.com/hook');
  assert.doesNotMatch(await read('webhooks.json'), /whsec_|"secret/);
  assert.match(await read('events.ndjson'), /"eventType":"workflow_finished"/);
  assert.equal((await stat(join(directory, 'kept/data/people.ndjson'))).mode & 0o777, 0o600);

  const teams = await run('teams', 'list', '--json');
  assert.deepEqual(
    (JSON.parse(teams.stdout) as { slug: string }[]).map(({ slug }) => slug),
    ['other'],
  );
  assert.equal((await run('keys', 'list')).stdout, '');
  assert.equal((await run('data', 'get', 'people')).stdout, '{"id":"9"}\n');
  assert.equal((await run('teams', 'delete', 'acme', '--yes')).code, 3);
});

test('a running server ends the runs of a deleted team, and rejects its keys', async (t) => {
  const { environment, directory, run } = await makePlace(t, { ...WORKFLOWS, ...SLOW });
  const server = await startServerProcess(environment);
  t.after(() => server.stop());
  const key = (await run('keys', 'create', '--team', 'acme')).stdout.trim();
  const call = (path: string, method = 'GET') =>
    fetch(server.url + path, { method, headers: { 'x-api-key': key } });
  assert.equal((await call('/v1/workflows/slow/queue', 'POST')).status, 200);
  while (!(await run('jobs', 'list', '--team', 'acme', '--state', 'running')).stdout.includes('job_'));

  const refused = await run('teams', 'delete', 'acme', '--yes');
  assert.deepEqual([refused.code, /1 job of "acme" is running: job_/.test(refused.stderr)], [5, true]);
  assert.equal((await call('/v1/me')).status, 200);

  const forced = await run('teams', 'delete', 'acme', '--yes', '--force', '--no-export');
  assert.equal(forced.code, 0, forced.stderr);
  assert.equal(existsSync(join(directory, 'acme')), false);
  while ((await call('/v1/me')).status !== 401);
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
  assert.equal((await run('run', 'other/people', '--wait')).code, 0);
});
