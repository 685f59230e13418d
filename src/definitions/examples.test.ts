/** The example workflows, run as the service runs them. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { directoryOf, finish, TRIAL } from '../../test/support/jobs/sources.ts';
import type { Definition } from '../model/workflow.ts';
import { parseAllowNetworks } from '../net/address-policy.ts';
import { silentLogger } from '../observe/log.ts';
import { startRun } from '../sources/start.ts';
import { loadWorkflows } from './load.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/workflows');

const loaded = loadWorkflows({
  directory: EXAMPLES,
  known: () => undefined,
  runAs: undefined,
  log: silentLogger,
});

async function definitionOf(id: string): Promise<Definition> {
  const { found, mistakes } = await loaded;
  assert.deepEqual(mistakes, []);
  const definition = found.find((one) => one.team === 'default' && one.id === id)?.definition;
  assert.ok(definition);
  return definition;
}

async function run(id: string, workflowsDirectory: string, change = (definition: Definition) => definition) {
  const started = await startRun({
    ...TRIAL,
    workflowsDirectory,
    definition: change(await definitionOf(id)),
    fetchPolicy: parseAllowNetworks('loopback'),
    team: 'default',
    workflowId: id,
    environment: new Map([['PATH', '/usr/local/bin:/usr/bin:/bin']]),
  });
  const { lines, end } = await finish(started);
  return { records: lines.map((line) => JSON.parse(line) as Record<string, unknown>), end };
}

/** Copies the examples to a directory outside of this repository. */
async function copied(t: TestContext): Promise<string> {
  const directory = await directoryOf(t, {});
  await cp(EXAMPLES, directory, { recursive: true });
  return directory;
}

test('package-authors yields the authors of the installed packages with unique ids', async () => {
  const { records, end } = await run('package-authors', EXAMPLES);
  assert.equal(end.ok, true);
  assert.ok(records.length > 20);
  assert.equal(new Set(records.map(({ id }) => id)).size, records.length);
  assert.ok(records.every(({ name, package: of }) => typeof name === 'string' && typeof of === 'string'));
  const matteo = records.find(
    (record) => record.package === 'fastify' && /Collina/.test(String(record.name)),
  );
  assert.equal(matteo?.email, 'hello@matteocollina.com');
  assert.equal(matteo?.licence, 'MIT');
});

test('commit-authors yields one record for each author of the repository that contains it', async (t) => {
  const directory = await copied(t);
  const git = (name: string, email: string, date: string, ...args: string[]) =>
    execFileSync('git', ['-c', `user.name=${name}`, '-c', `user.email=${email}`, ...args], {
      cwd: directory,
      env: { ...process.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date },
    });
  const commit = ['commit', '--quiet', '--allow-empty', '--message', 'A "message"\n\nwith lines'];
  git('x', 'x', '', 'init', '--quiet');
  git('Ada', 'Ada@example.org', '2026-01-01T00:00:00Z', ...commit);
  git('Grace "G" \\ Hopper', 'grace@example.org', '2026-01-02T00:00:00Z', ...commit);
  git('Ada Lovelace', 'ada@example.org', '2026-01-03T00:00:00Z', ...commit);
  const { records, end } = await run('commit-authors', directory);
  assert.equal(end.ok, true);
  assert.deepEqual(records, [
    {
      id: 'ada@example.org',
      name: 'Ada Lovelace',
      email: 'ada@example.org',
      commits: 2,
      firstCommitAt: '2026-01-01T00:00:00.000Z',
      lastCommitAt: '2026-01-03T00:00:00.000Z',
    },
    {
      id: 'grace@example.org',
      name: 'Grace "G" \\ Hopper',
      email: 'grace@example.org',
      commits: 1,
      firstCommitAt: '2026-01-02T00:00:00.000Z',
      lastCommitAt: '2026-01-02T00:00:00.000Z',
    },
  ]);
});

test('commit-authors fails with a clear error without a repository or without commits', async (t) => {
  const directory = await copied(t);
  const without = await run('commit-authors', directory);
  assert.ok(!without.end.ok && /There is no git repository at or above/.test(without.end.error));
  execFileSync('git', ['init', '--quiet'], { cwd: directory });
  const empty = await run('commit-authors', directory);
  assert.ok(!empty.end.ok && /The git repository has no commits yet/.test(empty.end.error));
});

test('the workflows of the example site read its pages, its API and its files', async (t) => {
  const script = join(EXAMPLES, '../site/site.mts');
  const site = spawn(process.execPath, [script, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => site.kill());
  const [said] = (await once(site.stdout, 'data')) as [Buffer];
  const { origin } = new URL(said.toString());
  const there = (definition: Definition): Definition => {
    const { source } = definition;
    assert.ok(source.type === 'http');
    const urls = source.urls.map((url) => url.replace('http://127.0.0.1:9100', origin));
    return { ...definition, source: { ...source, urls } };
  };
  const ada = {
    'site-people': {
      id: 'ada',
      name: 'Ada Lovelace',
      email: 'ada@example.org',
      born: '1815-12-10',
      field: 'Analytical engine',
    },
    'site-contacts': { id: 'ada', name: 'Ada Lovelace', email: 'ada@example.org' },
    'site-csv': { id: 'ada', name: 'Ada Lovelace', born: '1815-12-10' },
    'site-ndjson': {
      id: 'ada',
      name: 'Ada Lovelace',
      born: '10.12.1815',
      mail: 'ada@example.org',
      field: 'Analytical engine',
    },
  };
  for (const [id, first] of Object.entries(ada)) {
    const { records, end } = await run(id, EXAMPLES, there);
    assert.equal(end.ok, true, JSON.stringify(end));
    assert.equal(records.length, 5, id);
    assert.deepEqual(records[0], first);
  }
});
